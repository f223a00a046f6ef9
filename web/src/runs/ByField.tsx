import { $api } from "../api/client";
import { useAddress } from "../parts/address";
import { Choice } from "../parts/Choice";
import { Panel } from "../parts/Panel";
import { Slices } from "./RunSummary";

/** A run by a field of its cases' metadata or of its rows, which the address names. */
export function ByField({ run }: { run: string }) {
  const [{ by }, change] = useAddress({ by: "" });
  const fields = useFields(run, by);
  if (fields.length === 0) return null;
  return (
    <Panel
      title="By a field"
      place={by}
      what="Counting the cells"
      beside={
        <FieldChoice
          fields={fields}
          by={by}
          choose={(field) => change({ by: field }, { isStep: true })}
        />
      }
    >
      {by ? (
        <Counted run={run} by={by} />
      ) : (
        <p className="m-0 text-soft">
          Choose what its cases or rows have in common, to see where it does worst.
        </p>
      )}
    </Panel>
  );
}

function Counted({ run, by }: { run: string; by: string }) {
  const init = { params: { path: { run }, query: { by } } };
  const found = $api.useSuspenseQuery("get", "/api/v1/runs/{run}/overview", init).data.broken_down;
  return found && <Slices found={found} />;
}

/** The fields that a run may be broken down by, also the one that is chosen. */
export function useFields(run: string, by: string): readonly string[] {
  const init = { params: { path: { run } } };
  const fields = $api.useQuery("get", "/api/v1/runs/{run}/agents", init, {
    enabled: run !== "",
    retry: false,
  }).data?.fields;
  return [...new Set([...(fields ?? []), by])].filter(Boolean);
}

export function FieldChoice({ fields, by, choose }: FieldChoiceProps) {
  return (
    <Choice
      label="By"
      isInline
      value={by}
      options={[["", "no field"], ...fields.map((field) => [field, field] as const)]}
      change={choose}
    />
  );
}

interface FieldChoiceProps {
  fields: readonly string[];
  by: string;
  choose: (field: string) => void;
}
