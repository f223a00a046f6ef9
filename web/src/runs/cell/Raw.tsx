import { useState } from "react";
import { Button } from "../../parts/Button";
import { whole } from "../../parts/figures";

const SHOWN = 100_000;

/** All that is stored of the cell, as JSON. */
export function Raw({ detail }: { detail: unknown }) {
  const [isWhole, setWhole] = useState(false);
  const text = JSON.stringify(detail, null, 2);
  const isCut = text.length > SHOWN && !isWhole;
  return (
    <>
      {isCut && (
        <p className="m-0 mb-3 flex flex-wrap items-center gap-3">
          The first {whole(SHOWN)} of {whole(text.length)} characters.
          <Button onPress={() => setWhole(true)}>Show all</Button>
        </p>
      )}
      <pre dir="auto" className="m-0 whitespace-pre-wrap wrap-anywhere">
        {isCut ? text.slice(0, SHOWN) : text}
      </pre>
    </>
  );
}
