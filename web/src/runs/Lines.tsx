import type { Schemas } from "../api/client";
import { Named } from "../parts/Page";

/** Numbers in words, as the command prints them; what needs attention stands out. */
export function Lines({ lines }: { lines: readonly Schemas["RunLine"][] }) {
  return (
    <div className="mt-4">
      <Named
        rows={lines.map(({ label, text, warns }) => [
          label,
          <span key={label} className={warns ? "text-error" : ""}>
            {text}
          </span>,
        ])}
      />
    </div>
  );
}
