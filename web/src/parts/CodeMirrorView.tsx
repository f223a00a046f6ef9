import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { CODE, type CodeProps } from "./CodeView";
import { look } from "./codemirror";

export default function CodeMirrorView({ text, language, label }: CodeProps) {
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          EditorState.readOnly.of(true),
          EditorView.editable.of(false),
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          EditorView.lineWrapping,
          lineNumbers(),
          language === "python" ? python() : json(),
          look(),
        ],
      }),
    });
    return () => view.destroy();
  }, [text, language, label]);
  return <section className={CODE} ref={place} aria-label={label} />;
}
