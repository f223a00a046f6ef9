import {
  createContext,
  type KeyboardEvent,
  type ReactNode,
  useContext,
  useId,
  useState,
} from "react";
import { Button } from "./Button";
import { Icon } from "./Icon";

/** Whether everything is shown from the start, as on paper. */
export const Unfolded = createContext(false);

/** A row that opens; what is inside is made when it is opened first, as there may be thousands. */
export function Disclosure({ head, children, tone = "", isOpen = false }: DisclosureProps) {
  const [open, setOpen] = useState(useContext(Unfolded) || isOpen);
  const body = useId();
  return (
    <div className={`border-b border-line ${tone}`}>
      <button
        type="button"
        data-row=""
        aria-expanded={open}
        aria-controls={open ? body : undefined}
        onClick={() => setOpen(!open)}
        className="flex min-h-9 w-full cursor-pointer items-center gap-2 px-1 py-1 text-left outline-offset-[-2px] hover:bg-sunk
          pointer-coarse:min-h-11"
      >
        <span className={`text-soft motion-safe:transition-transform ${open ? "rotate-90" : ""}`}>
          <Icon name="right" size={12} />
        </span>
        {head}
      </button>
      {open && (
        <div id={body} className="pt-1 pb-4 pl-6">
          {children()}
        </div>
      )}
    </div>
  );
}

interface DisclosureProps {
  head: ReactNode;
  children: () => ReactNode;
  tone?: string;
  isOpen?: boolean;
}

/** The first of many, and a button for the others. */
export function Cut<T>({ all, first, children }: CutProps<T>) {
  const [isWhole, setWhole] = useState(useContext(Unfolded));
  const shown = isWhole ? all : all.slice(0, first);
  return (
    <>
      {shown.map(children)}
      {shown.length < all.length && (
        <Button tone="quiet" onPress={() => setWhole(true)}>
          Show all {all.length}
        </Button>
      )}
    </>
  );
}

interface CutProps<T> {
  all: readonly T[];
  first: number;
  children: (one: T) => ReactNode;
}

/** Rows that j and k, or the arrows, walk through; Enter opens one. */
export function Rows({ label, children }: { label: string; children: ReactNode }) {
  const walk = (event: KeyboardEvent<HTMLElement>) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-row]")];
    const here = rows.indexOf(document.activeElement as HTMLElement);
    const next = rows[here + step];
    if (here < 0 || !next) return;
    event.preventDefault();
    next.focus();
  };
  return (
    <section aria-label={label} onKeyDown={walk}>
      {children}
    </section>
  );
}
