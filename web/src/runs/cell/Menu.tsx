import { type ReactNode, useEffect, useRef } from "react";

/** What opens below a button, and closes with Escape or a click elsewhere. */
export function Menu({ name, children }: { name: string; children: ReactNode }) {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const own = box.current;
      if (!own?.open) return;
      const isKey = event instanceof KeyboardEvent;
      if (isKey ? event.key === "Escape" : !own.contains(event.target as Node)) {
        own.open = false;
        if (isKey) own.querySelector("summary")?.focus();
      }
    };
    document.addEventListener("keydown", close);
    document.addEventListener("pointerdown", close);
    return () => {
      document.removeEventListener("keydown", close);
      document.removeEventListener("pointerdown", close);
    };
  }, []);
  return (
    <details ref={box} className="menu">
      <summary className="button">{name}</summary>
      <div className="menu-box panel">{children}</div>
    </details>
  );
}
