// What every CodeMirror of the page has in common. Imported by chunks that are loaded when needed.
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--flag)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--pass)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--error)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.propertyName], color: "var(--accent)" },
]);

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--bg)", color: "var(--text)", fontSize: "12.5px", height: "100%" },
  "&.cm-focused": { outline: "none" }, // its frame shows the focus
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": {
    backgroundColor: "var(--bg-2)",
    color: "var(--soft)",
    borderRight: "1px solid var(--line)",
  },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--bg-3) 45%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--bg-3)", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "color-mix(in srgb, var(--focus) 28%, transparent)" },
  ".cm-selectionMatch": { backgroundColor: "var(--bg-3)" },
  ".cm-matchingBracket": {
    backgroundColor: "var(--accent-bg)",
    outline: "1px solid var(--accent)",
  },
  ".cm-tooltip, .cm-panels": {
    backgroundColor: "var(--bg)",
    color: "var(--text)",
    border: "1px solid var(--line-strong)",
    borderRadius: "var(--radius)",
  },
  ".cm-tooltip": { boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
  },
  ".cm-tooltip-autocomplete ul li": { padding: "2px 8px" },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal", opacity: "1" },
  ".cm-completionInfo": { maxWidth: "360px", padding: "6px 10px", fontFamily: "var(--font)" },
  ".cm-diagnostic": { padding: "6px 10px", maxWidth: "560px", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--fail)" },
  ".cm-diagnostic-warning": { borderLeft: "4px solid var(--error)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--fail)",
    textDecorationSkipInk: "none",
  },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--error)",
    textDecorationSkipInk: "none",
  },
  ".cm-button": {
    backgroundImage: "none",
    backgroundColor: "var(--bg)",
    border: "1px solid var(--line-strong)",
    borderRadius: "var(--radius)",
    color: "var(--text)",
  },
  ".cm-textfield": { backgroundColor: "var(--bg)", border: "1px solid var(--line-strong)" },
  ".cm-changedLine": { backgroundColor: "color-mix(in srgb, var(--pass-bg) 60%, transparent)" },
  "&.cm-merge-a .cm-changedLine": {
    backgroundColor: "color-mix(in srgb, var(--fail-bg) 60%, transparent)",
  },
  "&.cm-merge-b .cm-changedText": { background: "var(--pass-bg)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "var(--fail-bg)",
  },
  ".cm-collapsedLines": {
    color: "var(--soft)",
    background: "var(--bg-2)",
    padding: "3px 10px",
  },
});

/** Colours and sizes of the page's own, and the nonce that the server allows style sheets by. */
export function look() {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
  return [EditorView.cspNonce.of(nonce), theme, syntaxHighlighting(colours)];
}
