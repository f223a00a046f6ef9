import { Fragment } from "react";
import { Dialog } from "../parts/Dialog";
import { listedKeys } from "../parts/keys";
import { EVERYWHERE } from "./keys";

/** Which keys do what on this page. */
export function KeysHelp({ close }: { close: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <div className="keys">
        {[...listedKeys(), EVERYWHERE].map((part) => (
          <section key={part.title}>
            <h3>{part.title}</h3>
            <dl>
              {part.keys.map(([keys, does]) => (
                <Fragment key={keys}>
                  <dt>
                    {keys.split(" ").map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </Fragment>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
