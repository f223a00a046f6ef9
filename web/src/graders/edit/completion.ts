import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { syntaxTree } from "@codemirror/language";
import members from "./thread.json";

const MEMBERS: Completion[] = members.map((member) => ({
  label: member.name,
  type: member.kind,
  detail: member.detail,
  info: member.info.replaceAll("`", ""),
  ...(member.kind === "method" && {
    apply: `${member.name}()`,
  }),
}));

const METADATA = /\bmetadata(?:\[|\.get\(\s*)(["'])([^"'\n]*)$/;
const PARAMETER = /async\s+def\s+grade\s*\(\s*([A-Za-z_]\w*)/;

/** What a `StringThread` has, and the keys that rows have in their metadata. */
export function threadCompletion(keys: () => readonly string[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const key = METADATA.exec(before);
    if (key) {
      const options = keys().map((label) => ({ label, type: "constant", detail: "metadata" }));
      return { from: context.pos - (key[2] ?? "").length, options };
    }
    const inside = syntaxTree(context.state).resolveInner(context.pos, -1).name;
    if (inside === "String" || inside === "Comment") return null;
    const name = PARAMETER.exec(context.state.doc.toString())?.[1] ?? "thread";
    const member = new RegExp(`(?:^|[^\\w.])${name}\\.(\\w*)$`).exec(before);
    if (member) return { from: context.pos - (member[1] ?? "").length, options: MEMBERS };
    const word = /(?:^|[^\w.])([A-Za-z_]\w*)$/.exec(before);
    if (!word) return null;
    const from = context.pos - (word[1] ?? "").length;
    return { from, options: [{ label: name, type: "variable", detail: ": StringThread" }] };
  };
}
