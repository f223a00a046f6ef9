import { useQuery } from "@tanstack/react-query";
import { api, ask } from "../api/client";
import { Command } from "../parts/Command";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";

/** What answers here, and whether it can isolate what it grades. */
export function ServerPart() {
  const server = useQuery({
    queryKey: ["server"],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/server", { signal })),
  });
  if (server.isPending) return <Loading what="Trying the sandboxes" />;
  if (server.error) return <ProblemBox problem={server.error} retry={() => server.refetch()} />;
  const one = server.data;
  return (
    <div className="stack">
      <dl className="named">
        <dt>Version</dt>
        <dd>
          assay {one.version}, Python {one.python}, {one.platform}
        </dd>
        <dt>Database</dt>
        <dd>
          {one.database} {one.location && <code>{one.location}</code>}
        </dd>
        <dt>Reached from</dt>
        <dd>{one.is_local ? "this machine only" : "other machines, with keys"}</dd>
        <dt>Commands run in</dt>
        <dd>
          <Tier name={one.commands} />
        </dd>
        <dt>Functions run in</dt>
        <dd>
          <Tier name={one.functions} />
        </dd>
        <dt>Allowed</dt>
        <dd>
          {one.allowed.map((line) => (
            <div key={line}>{line}</div>
          ))}
        </dd>
      </dl>
      <section>
        <h2>Isolation</h2>
        <table>
          <tbody>
            {one.checks.map((check) => (
              <tr key={check.name}>
                <td>
                  <Outcome state={check.ok ? "pass" : "error"} />
                </td>
                <td className="nowrap">{check.name}</td>
                <td className="anywhere">
                  {check.detail}
                  {check.fix && <div className="soft">fix: {check.fix}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <p>
          The rest of this machine: <Command text="assay doctor" />
        </p>
      </section>
      <section>
        <h2>Limits</h2>
        <table>
          <tbody>
            {one.limits.map((limit) => (
              <tr key={limit.name}>
                <td>{limit.name}</td>
                <td className="number">{limit.value}</td>
                <td className="soft">{limit.about}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}

function Tier({ name }: { name: string }) {
  if (name) return <Outcome state="pass" text={name} />;
  return <Outcome state="error" text="no sandbox works: nothing untrusted is run" />;
}
