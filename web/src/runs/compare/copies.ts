import type { Schemas } from "../../api/client";
import { score, signed } from "../../parts/figures";

type Found = Schemas["RunComparison"];

/** What is compared, as the page's address says it. */
export interface Asked {
  a: string;
  b: string;
  a_harness: string;
  a_model: string;
  b_harness: string;
  b_model: string;
  by: string;
}

/** The command that says the same. */
export function commandOf(asked: Asked, found: Found): string {
  const runs = [nameOf(asked.a, found.before.run)];
  if (asked.b && asked.b !== asked.a) runs.push(nameOf(asked.b, found.after.run));
  const options: string[] = [];
  for (const part of ["harness", "model"] as const) {
    const [one, other] = [asked[`a_${part}`], asked[`b_${part}`]];
    // One option means both sides; so where only one side has one, no option can say it.
    if (one && one === other) options.push(`--${part}=${one}`);
    else if (one && other) options.push(`--${part}=${one}`, `--${part}=${other}`);
  }
  if (asked.by) options.push(`--by=${asked.by}`);
  return ["assay", "compare", ...runs, ...options].map(quoted).join(" ");
}

/** What stands in an address is a stranger's, too: what a shell or a command would obey is an id. */
function nameOf(asked: string, id: string): string {
  return asked.startsWith("-") ? id : asked;
}

function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  // Control characters could end what a terminal takes for pasted.
  const plain = word.replace(/\p{Cc}/gu, "?");
  return `'${plain.replaceAll("'", "'\\''")}'`;
}

/** The comparison as Markdown: the sentence, the numbers, and the cases that changed. */
export function markdownOf(found: Found): string {
  const lines = [`**${cell(found.sentence)}**`, "", "| | |", "|---|---|"];
  for (const line of found.lines) lines.push(`| ${cell(line.label)} | ${cell(line.text)} |`);
  for (const reason of found.reasons) lines.push(`| Changed | ${cell(reason)} |`);
  const changed = [...found.worsened, ...found.improved];
  if (changed.length) {
    lines.push("", "| Case | Before | After | Difference |", "|---|---:|---:|---:|");
    for (const one of changed) {
      const numbers = [score(one.before), score(one.after), signed(one.difference)];
      lines.push(`| ${cell(one.case)} | ${numbers.join(" | ")} |`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** A text that stays one in a table: names of cases are other people's. */
function cell(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[\\`*_[\]<>|#!]/g, "\\$&");
}
