// What every CodeMirror of the page has in common. Imported by chunks that are loaded when needed.
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--color-flag)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--color-pass)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--color-error)" },
  { tag: tags.comment, color: "var(--color-soft)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.propertyName], color: "var(--color-accent)" },
]);

const theme = EditorView.theme({
  "&": {
    backgroundColor: "var(--color-page)",
    color: "var(--color-ink)",
    fontSize: "12.5px",
    height: "100%",
  },
  "&.cm-focused": { outline: "none" }, // its frame shows the focus
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--color-ink)", padding: "8px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--color-ink)" },
  ".cm-gutters": {
    backgroundColor: "var(--color-sunk)",
    color: "var(--color-soft)",
    borderRight: "1px solid var(--color-line)",
  },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--color-fill) 45%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--color-fill)", color: "var(--color-ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "color-mix(in srgb, var(--color-accent) 28%, transparent)" },
  ".cm-selectionMatch": { backgroundColor: "var(--color-fill)" },
  ".cm-matchingBracket": {
    backgroundColor: "var(--color-accent-soft)",
    outline: "1px solid var(--color-accent)",
  },
  ".cm-tooltip, .cm-panels": {
    backgroundColor: "var(--color-page)",
    color: "var(--color-ink)",
    border: "1px solid var(--color-edge)",
    borderRadius: "var(--radius-md)",
  },
  ".cm-tooltip": { boxShadow: "var(--shadow-over)", overflow: "hidden" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--color-accent)",
    color: "var(--color-page)",
  },
  ".cm-tooltip-autocomplete ul li": { padding: "2px 8px" },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal", opacity: "1" },
  ".cm-completionInfo": { maxWidth: "360px", padding: "6px 10px", fontFamily: "var(--font-sans)" },
  ".cm-diagnostic": { padding: "6px 10px", maxWidth: "560px", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--color-fail)" },
  ".cm-diagnostic-warning": { borderLeft: "4px solid var(--color-error)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--color-fail)",
    textDecorationSkipInk: "none",
  },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--color-error)",
    textDecorationSkipInk: "none",
  },
  ".cm-button": {
    backgroundImage: "none",
    backgroundColor: "var(--color-page)",
    border: "1px solid var(--color-edge)",
    borderRadius: "var(--radius-md)",
    color: "var(--color-ink)",
  },
  ".cm-textfield": { backgroundColor: "var(--color-page)", border: "1px solid var(--color-edge)" },
  ".cm-changedLine": {
    backgroundColor: "color-mix(in srgb, var(--color-pass-soft) 60%, transparent)",
  },
  "&.cm-merge-a .cm-changedLine": {
    backgroundColor: "color-mix(in srgb, var(--color-fail-soft) 60%, transparent)",
  },
  "&.cm-merge-b .cm-changedText": { background: "var(--color-pass-soft)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "var(--color-fail-soft)",
  },
  ".cm-collapsedLines": {
    color: "var(--color-soft)",
    background: "var(--color-sunk)",
    padding: "3px 10px",
  },
});

/** Colours and sizes of the page's own, and the nonce that the server allows style sheets by. */
export function look() {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
  return [EditorView.cspNonce.of(nonce), theme, syntaxHighlighting(colours)];
}
