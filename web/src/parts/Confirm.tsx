import type { ReactNode } from "react";
import { Dialog } from "./Dialog";

/** Asks before something that cannot be undone; says what it takes away. */
export function Confirm({ title, action, disabled, close, confirm, children }: ConfirmProps) {
  return (
    <Dialog title={title} close={close}>
      {children}
      <div className="row end">
        <button type="button" onClick={close}>
          Keep it
        </button>
        <button type="button" className="danger" disabled={disabled} onClick={confirm}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  action: string;
  disabled: boolean;
  close: () => void;
  confirm: () => void;
  children: ReactNode;
}
