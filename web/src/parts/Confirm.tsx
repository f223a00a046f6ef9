import { type ReactNode, useEffect, useRef } from "react";
import "./parts.css";

/** Asks before something that cannot be undone; says what it takes away. Escape closes it. */
export function Confirm({ title, action, isBusy, close, confirm, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} className="confirm" aria-label={title} onClose={close}>
      <h2>{title}</h2>
      {children}
      <div className="row end">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button type="button" className="danger" disabled={isBusy} onClick={confirm}>
          {action}
        </button>
      </div>
    </dialog>
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
