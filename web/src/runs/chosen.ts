import { type Change, useAddress } from "../parts/address";

export const SORTS = ["case", "reward", "cost", "tokens", "seconds", "trial"] as const;
export type Sort = (typeof SORTS)[number];

const ALL = {
  outcome: [] as readonly string[],
  harness: null as string | null,
  model: null as string | null,
  case: "",
  search: "",
  cause: "",
  flagged: false,
  held: false,
  sort: "case" as Sort,
  descending: false,
};

/** Which cells are looked at, as it stands in the address. */
export type Chosen = typeof ALL;

/** With how to change it, the row that was opened last, and how to remember another. */
export function useChosen(): [Chosen, Change<Chosen>, number, (row: number) => void] {
  const [{ at, ...chosen }, change] = useAddress({ ...ALL, at: 0 });
  const isKnown = SORTS.includes(chosen.sort);
  return [
    isKnown ? chosen : { ...chosen, sort: "case" },
    (changes, how) => change({ ...changes, at: 0 }, how),
    at,
    (row) => change({ at: row }),
  ];
}

/** The same as a request asks for it. */
export function queryOf({ outcome, harness, model, ...rest }: Chosen) {
  const agent = { ...(harness !== null && { harness }), ...(model !== null && { model }) };
  return { ...rest, ...agent, outcome: outcome.join(",") };
}
