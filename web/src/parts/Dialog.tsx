import { type ReactNode, useEffect, useId, useRef } from "react";
import "./parts.css";

/**
 * Something that has to be dealt with before the page; Escape closes it.
 *
 * @param close What closes it; without it, it stays.
 */
export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("input:not([hidden])")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      className="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close?.();
      }}
      onClick={(event) => {
        if (event.target === element.current) close?.();
      }}
      onKeyDown={(event) => {
        // Chromium asks only once before it closes a dialog on its own.
        if (event.key === "Escape") {
          event.preventDefault();
          close?.();
        }
      }}
    >
      <div className="dialog-body">
        <div className="spread">
          <h2 id={id}>{title}</h2>
          {close && (
            <button type="button" className="quiet" onClick={close} aria-label="Close">
              ✕
            </button>
          )}
        </div>
        {children}
      </div>
    </dialog>
  );
}

interface DialogProps {
  title: string;
  close?: () => void;
  children: ReactNode;
}
