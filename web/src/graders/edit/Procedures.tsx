import type { MemberProps } from "../../parts/SchemaForm";

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
    <fieldset className="options">
      <legend className="label">Procedure</legend>
      {PROCEDURES.map(([name, title, told]) => (
        <label key={name} className="option">
          <input
            type="radio"
            name="procedure"
            checked={value === name}
            onChange={() => onChange(name)}
          />
          <span>
            <strong>{title}</strong>
            <span className="soft">{told}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
