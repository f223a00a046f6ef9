import type { ReactNode } from "react";
import { Dialog } from "./Dialog";

/** Asks before something that cannot be undone; says what it takes away. */
export function Confirm({ title, action, isBusy, close, confirm, children }: ConfirmProps) {
  return (
    <Dialog title={title} close={close}>
      {children}
      <div className="row end">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" className="danger" disabled={isBusy} onClick={confirm}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  action: string;
  isBusy: boolean;
  close: () => void;
  confirm: () => void;
  children: ReactNode;
}
