import type { MemberProps } from "../../parts/schema";

const PROCEDURES = [
  [
    "FAITHFULNESS",
    "Faithfulness",
    "Claims of the answer that the documents support / all claims. Documents are turns with the role document.",
  ],
  [
    "CONTEXT_RELEVANCY",
    "Context relevancy",
    "Documents that matter to the question / all documents.",
  ],
  [
    "ANSWER_RELEVANCY",
    "Answer relevancy",
    "Claims that answer the question / all claims: what nobody asked for lowers it.",
  ],
] as const;

/** The procedures of a pre-built judge, each with what it measures. */
export function Procedures({ value, onChange }: MemberProps) {
  return (
    <fieldset className="m-0 grid gap-2 border-0 p-0">
      <legend className="mb-1 font-medium">Procedure</legend>
      {PROCEDURES.map(([name, title, told]) => (
        <label
          key={name}
          className="grid cursor-pointer grid-cols-[auto_minmax(0,1fr)] gap-3 rounded-lg bg-sunk px-4 py-2.5 has-checked:bg-accent-soft"
        >
          <input
            type="radio"
            name="procedure"
            checked={value === name}
            onChange={() => onChange(name)}
          />
          <span>
            <span className="block font-medium">{title}</span>
            <span className="block text-sm text-soft">{told}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
