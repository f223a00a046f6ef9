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

export function useChosen(): [Chosen, Change<Chosen>] {
  const [found, change] = useAddress({ ...ALL, at: null as string | null });
  const { at: _, ...chosen } = found;
  const isKnown = SORTS.includes(chosen.sort);
  return [
    isKnown ? chosen : { ...chosen, sort: "case" },
    (changes, how) => change({ ...changes, at: null }, how),
  ];
}

/** The same as a request asks for it. */
export function queryOf({ outcome, harness, model, ...rest }: Chosen) {
  const agent = { ...(harness !== null && { harness }), ...(model !== null && { model }) };
  return { ...rest, ...agent, outcome: outcome.join(",") };
}
