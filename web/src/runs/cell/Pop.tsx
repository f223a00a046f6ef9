import type { ReactNode } from "react";
import { Dialog, DialogTrigger, Popover } from "react-aria-components";
import { Button } from "../../parts/Button";
import { POPOVER } from "../../parts/Menu";

/** What opens below a button, and closes with Escape or a click elsewhere. */
export function Pop({ name, children }: { name: string; children: ReactNode }) {
  return (
    <DialogTrigger>
      <Button tone="quiet">{name}</Button>
      <Popover
        placement="bottom end"
        className={`${POPOVER} w-112 max-h-[80vh] overflow-y-auto p-4!`}
      >
        <Dialog aria-label={name} className="grid gap-3 outline-none [&_p]:m-0">
          {children}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}
