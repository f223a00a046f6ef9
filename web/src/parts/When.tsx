import { lately, moment } from "./figures";

/** When something was, short; all of it for who asks. */
export function When({ at }: { at: string | null | undefined }) {
  if (!at) return "–";
  return (
    <time dateTime={at} title={moment(at)} className="whitespace-nowrap">
      {lately(at)}
    </time>
  );
}
