import { useSearchParams } from "react-router";

/** What cells are looked at, as it stands in the address. */
export interface Chosen {
  outcome: string[];
  harness: string | null;
  model: string | null;
  case: string;
  search: string;
  cause: string;
  flagged: boolean;
  held: boolean;
  sort: Sort;
  descending: boolean;
}

export const SORTS = ["case", "reward", "cost", "tokens", "seconds", "trial"] as const;
export type Sort = (typeof SORTS)[number];

export function useChosen(): [Chosen, (changes: Record<string, string | null>) => void] {
  const [address, setAddress] = useSearchParams();
  const text = (name: string) => address.get(name) ?? "";
  const chosen: Chosen = {
    outcome: text("outcome").split(",").filter(Boolean),
    harness: address.get("harness"),
    model: address.get("model"),
    case: text("case"),
    search: text("search"),
    cause: text("cause"),
    flagged: text("flagged") === "true",
    held: text("held") === "true",
    sort: SORTS.find((one) => one === text("sort")) ?? "case",
    descending: text("descending") === "true",
  };
  const change = (changes: Record<string, string | null>) => {
    setAddress(
      (before) => {
        const next = new URLSearchParams(before);
        next.delete("at");
        for (const [name, value] of Object.entries(changes)) {
          if (value === null) next.delete(name);
          else next.set(name, value);
        }
        return next;
      },
      { replace: true },
    );
  };
  return [chosen, change];
}

/** The same as a request asks for it. */
export function queryOf(chosen: Chosen) {
  const { outcome, harness, model, ...rest } = chosen;
  const agent = {
    ...(harness === null ? {} : { harness }),
    ...(model === null ? {} : { model }),
  };
  return { ...rest, ...agent, outcome: outcome.join(",") };
}
