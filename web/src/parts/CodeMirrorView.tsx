import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { CodeProps } from "./CodeView";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--flag)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--pass)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--error)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.propertyName], color: "var(--accent)" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "var(--bg-2)", fontSize: "12.5px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-gutters": {
    backgroundColor: "var(--bg-2)",
    color: "var(--soft)",
    borderRight: "1px solid var(--line)",
  },
});

/** The nonce that the server allows style sheets by. */
function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
}

export default function CodeMirrorView({ text, language, label }: CodeProps) {
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          EditorView.cspNonce.of(nonce()),
          EditorState.readOnly.of(true),
          EditorView.editable.of(false),
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          EditorView.lineWrapping,
          lineNumbers(),
          language === "python" ? python() : json(),
          syntaxHighlighting(colours),
          look,
        ],
      }),
    });
    return () => view.destroy();
  }, [text, language, label]);
  return <section className="code" ref={place} aria-label={label} />;
}
