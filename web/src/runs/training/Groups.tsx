import type { Schemas } from "../../api/client";
import { percent, whole } from "../../parts/figures";

type End = Schemas["GroupEnd"];

const WIDE = 1000;
const TALL = 26;

/** The groups as one bar, by what they come to, and as the list that explains it. */
export function Groups({ ends }: { ends: readonly End[] }) {
  const shown = ends.filter((end) => end.groups > 0);
  let at = 0;
  const parts = shown.map((end) => {
    const width = (end.share ?? 0) * WIDE;
    at += width;
    return { end, x: at - width, width };
  });
  return (
    <div className="groups">
      <svg
        viewBox={`0 0 ${WIDE} ${TALL}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={shown.map((end) => `${nameOf(end)}: ${whole(end.groups)}`).join("; ")}
      >
        {parts.map(({ end, x, width }) => (
          <rect
            key={end.name}
            className={end.name}
            x={x}
            width={Math.max(1, width - 2)}
            height={TALL}
          >
            <title>{`${nameOf(end)}: ${whole(end.groups)}, ${percent(end.share)}`}</title>
          </rect>
        ))}
      </svg>
      <table>
        <tbody>
          {ends.map((end) => (
            <tr key={end.name} className={end.groups ? undefined : "soft"}>
              <th scope="row">
                <svg className="swatch" viewBox="0 0 10 10" aria-hidden="true">
                  <rect className={end.name} width="10" height="10" />
                </svg>
                {nameOf(end)}
              </th>
              <td className="number">{whole(end.groups)}</td>
              <td className="number">{percent(end.share)}</td>
              <td className="soft">{end.meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function nameOf(end: End): string {
  return end.name.replaceAll("_", " ");
}
