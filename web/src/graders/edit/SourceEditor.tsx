import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python, pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { type Diagnostic, linter, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, Prec, type Text } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import { look } from "../../parts/codemirror";
import { threadCompletion } from "./completion";
import type { Mark } from "./trial";

/** The source of a function: Python, with what is wrong marked as one types. */
export default function SourceEditor(props: SourceProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const now = useRef(props);
  now.current = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; what changes is read by ref
  useEffect(() => {
    if (!place.current) return;
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({ doc: props.source, extensions: extensions(now) }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);

  const isReadOnly = props.readOnly;
  useEffect(() => {
    view.current?.dispatch({ effects: writing.reconfigure(allowed(isReadOnly)) });
  }, [isReadOnly]);

  useImperativeHandle(props.ref, () => ({
    jump: (number) => {
      const made = view.current;
      if (!made) return;
      const line = made.state.doc.line(clamped(made.state.doc, number));
      const indent = line.text.length - line.text.trimStart().length;
      made.dispatch({
        selection: { anchor: line.from + indent },
        effects: EditorView.scrollIntoView(line.from, { y: "center" }),
      });
      made.focus();
    },
    show: (marks) => {
      const made = view.current;
      made?.dispatch(setDiagnostics(made.state, diagnostics(made.state.doc, marks)));
    },
  }));
  return <div ref={place} className="h-full" />;
}

const writing = new Compartment();

// A browser that types over coloured text gives what is typed the same colours by itself, in style
// attributes, which the page's security policy refuses. So the editor puts the text there.
const typingOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { from, to, empty } = view.state.selection.main;
    const text = event.data;
    if (event.inputType !== "insertText" || !text || empty || view.state.readOnly) return false;
    event.preventDefault();
    const insert = () =>
      view.state.update(view.state.replaceSelection(text), {
        userEvent: "input.type",
        scrollIntoView: true,
      });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, from, to, text, insert))) view.dispatch(insert());
    return true;
  },
});

function allowed(isReadOnly: boolean) {
  return EditorState.readOnly.of(isReadOnly);
}

function extensions(now: { current: SourceProps }) {
  const ours = ["Mod-s", "Mod-Enter"].map((key) => ({ key, run: () => true }));
  return [
    look(),
    Prec.highest(keymap.of(ours)), // the page listens to them, wherever the focus is
    EditorView.contentAttributes.of({ "aria-label": "Source of the function", tabindex: "0" }),
    EditorView.lineWrapping,
    writing.of(allowed(now.current.readOnly)),
    lineNumbers(),
    lintGutter(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    drawSelection(),
    history(),
    indentUnit.of("    "),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightSelectionMatches(),
    python(),
    pythonLanguage.data.of({ autocomplete: threadCompletion(() => now.current.keys) }),
    autocompletion({ icons: false }),
    keymap.of([
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...lintKeymap,
      indentWithTab,
    ]),
    linter(
      async (view) => {
        const marks = await now.current.check(view.state.doc.toString());
        return diagnostics(view.state.doc, marks);
      },
      { delay: 300 },
    ),
    typingOver,
    EditorView.updateListener.of((update) => {
      if (update.docChanged) now.current.change(update.state.doc.toString());
    }),
  ];
}

function clamped(doc: Text, line: number): number {
  return Math.max(1, Math.min(doc.lines, line));
}

function diagnostics(doc: Text, marks: readonly Mark[]): Diagnostic[] {
  return marks.map((mark) => {
    const line = doc.line(clamped(doc, mark.line));
    const indent = line.text.length - line.text.trimStart().length;
    const start = mark.column === null ? indent : Math.min(mark.column - 1, line.length);
    return {
      from: line.from + Math.max(0, start),
      to: line.to,
      severity: mark.severity,
      source: mark.source.replaceAll("_", " "),
      message: mark.message,
    };
  });
}

export interface SourceHandle {
  /** Shows a line and puts the cursor there. */
  jump: (line: number) => void;
  /** Marks what was found; the next change of the source takes the marks away. */
  show: (marks: readonly Mark[]) => void;
}

interface SourceProps {
  source: string;
  change: (source: string) => void;
  check: (source: string) => Promise<readonly Mark[]>;
  keys: readonly string[];
  readOnly: boolean;
  ref?: Ref<SourceHandle>;
}
