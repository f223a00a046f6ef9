import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { Dialog as Base, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Button, IconButton } from "./Button";
import { ProblemBox } from "./ProblemBox";

/**
 * Something that has to be dealt with before the page; Escape closes it.
 *
 * @param close What closes it; without it, it stays.
 */
export function Dialog({ title, close, isWide = false, children }: DialogProps) {
  return (
    <ModalOverlay
      isOpen
      isDismissable={close !== undefined}
      isKeyboardDismissDisabled={close === undefined}
      onOpenChange={(isOpen) => {
        if (!isOpen) close?.();
      }}
      className="fixed inset-0 z-40 flex items-start justify-center overflow-y-auto bg-black/40 p-4 pt-[10vh] max-md:items-end
        max-md:p-0"
    >
      <Modal
        className={`w-full rounded-lg bg-page text-ink shadow-over max-md:max-h-[92vh] max-md:overflow-y-auto
          max-md:rounded-b-none ${isWide ? "max-w-5xl" : "max-w-xl"}`}
      >
        <Base className="p-5 outline-none max-md:pb-8">
          <div className="mb-3 flex items-start justify-between gap-4">
            <Heading slot="title" className="m-0 text-lg font-semibold wrap-anywhere">
              {title}
            </Heading>
            {close && <IconButton icon="close" label="Close" onPress={close} />}
          </div>
          <Body>{children}</Body>
        </Base>
      </Modal>
    </ModalOverlay>
  );
}

/** Starts where something is written. */
function Body({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.querySelector<HTMLElement>("input:not([hidden])")?.focus();
  }, []);
  return <div ref={box}>{children}</div>;
}

/** What a dialog ends with: the way back first, what it is for last. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className="mt-5 flex flex-wrap items-center justify-end gap-2">{children}</div>;
}

/** Asks for what something needs, and does it; `work` is how that goes. */
export function FormDialog({ action, isDisabled, work, submit, children, ...rest }: FormProps) {
  const send = (event: FormEvent) => {
    event.preventDefault();
    submit();
  };
  return (
    <Dialog {...rest}>
      <form className="grid grid-cols-[minmax(0,1fr)] gap-4" onSubmit={send}>
        {children}
        {work.error && <ProblemBox problem={work.error} />}
        <Actions>
          <Button onPress={rest.close}>Cancel</Button>
          <Button
            type="submit"
            tone="primary"
            isDisabled={isDisabled ?? false}
            isPending={work.isPending}
          >
            {action}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}

/** Asks before something that cannot be undone; says what it takes away. No form: Enter takes nothing away. */
export function Confirm({ action, isDisabled, work, confirm, children, ...rest }: ConfirmProps) {
  return (
    <Dialog {...rest}>
      {children}
      {work.error && <ProblemBox problem={work.error} />}
      <Actions>
        <Button onPress={rest.close}>Keep it</Button>
        <Button
          tone="danger"
          isDisabled={isDisabled ?? false}
          isPending={work.isPending}
          onPress={confirm}
        >
          {action}
        </Button>
      </Actions>
    </Dialog>
  );
}

interface DialogProps {
  title: string;
  close?: () => void;
  isWide?: boolean;
  children: ReactNode;
}

interface AskingProps extends DialogProps {
  close: () => void;
  action: string;
  isDisabled?: boolean;
  work: { isPending: boolean; error: Error | null };
}

interface ConfirmProps extends AskingProps {
  confirm: () => void;
}

interface FormProps extends AskingProps {
  submit: () => void;
}
