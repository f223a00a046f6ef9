import { useState } from "react";
import { whole } from "../../parts/figures";

const SHOWN = 100_000;

/** All that is stored of the cell, as JSON. */
export function Raw({ detail }: { detail: unknown }) {
  const [isWhole, setWhole] = useState(false);
  const text = JSON.stringify(detail, null, 2);
  const isLong = text.length > SHOWN;
  return (
    <div>
      {isLong && !isWhole && (
        <p>
          The first {whole(SHOWN)} of {whole(text.length)} characters.{" "}
          <button type="button" onClick={() => setWhole(true)}>
            Show all
          </button>
        </p>
      )}
      <pre dir="auto">{isLong && !isWhole ? text.slice(0, SHOWN) : text}</pre>
    </div>
  );
}
