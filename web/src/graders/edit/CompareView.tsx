import { python } from "@codemirror/lang-python";
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { look } from "../../parts/codemirror";

/** Two sources side by side, with what differs marked. */
export default function CompareView({ before, after, names }: CompareProps) {
  const place = useRef<HTMLDivElement>(null);
  const [left, right] = names;
  useEffect(() => {
    if (!place.current) return;
    const side = (doc: string, name: string) => ({
      doc,
      extensions: [
        look(),
        lineNumbers(),
        python(),
        EditorState.readOnly.of(true),
        EditorView.contentAttributes.of({ "aria-label": name, tabindex: "0" }),
        EditorView.lineWrapping,
      ],
    });
    const view = new MergeView({
      a: side(before, left),
      b: side(after, right),
      parent: place.current,
      collapseUnchanged: { margin: 3, minSize: 6 },
    });
    return () => view.destroy();
  }, [before, after, left, right]);
  return (
    <div className="overflow-hidden rounded-lg border border-line">
      <div className="grid grid-cols-2 border-b border-line bg-sunk font-medium [&>*]:px-3 [&>*]:py-1.5">
        <span>{left}</span>
        <span>{right}</span>
      </div>
      <div ref={place} className="max-h-[60vh] overflow-auto" />
      {before === after && <p className="m-0 px-3 py-2 text-soft">Both are the same.</p>}
    </div>
  );
}

interface CompareProps {
  before: string;
  after: string;
  names: readonly [string, string];
}
