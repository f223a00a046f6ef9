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
}

/** The command that says the same. */
export function commandOf(asked: Asked): string {
  const words = ["assay", "compare", asked.a, ...(asked.b && asked.b !== asked.a ? [asked.b] : [])];
  for (const part of ["harness", "model"] as const) {
    const [one, other] = [asked[`a_${part}`], asked[`b_${part}`]];
    // One option means both sides; so where only one side has one, no option can say it.
    if (one && one === other) words.push(`--${part}`, one);
    else if (one && other) words.push(`--${part}`, one, `--${part}`, other);
  }
  return words.map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
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
