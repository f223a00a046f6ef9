import { moment, score } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { Below, Table } from "../../parts/Table";
import type { CellView } from "./asking";
import { numbered } from "./numbered";

/** Every result that the cell ever had, newest first, with what people decided about each. */
export function History({ cell }: { cell: CellView }) {
  return (
    <Table
      label="Results of the cell"
      items={numbered(cell.history)}
      keyOf={({ place }) => place}
      columns={[
        {
          name: "Result",
          show: ({ one }) => <Outcome state={one.state} text={one.state} />,
          below: ({ place }) => place === 0 && "now",
        },
        { name: "Reward", kind: "number", show: ({ one }) => score(one.reward) },
        { name: "How it came about", kind: "name", show: ({ one }) => one.sentence },
        {
          name: "Decision",
          show: ({ one: { decision } }) =>
            decision ? (
              <>
                {decision.ruling}, {decision.by}, {moment(decision.at)}
                {decision.note && <Below>{decision.note}</Below>}
              </>
            ) : (
              "–"
            ),
        },
        { name: "Graded by", show: ({ one }) => <code>{one.digest}</code> },
      ]}
    />
  );
}
