import { useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { Dialog } from "../../parts/Dialog";

/** Asks before a page with unsaved changes is left. They are kept in the tab unless discarded. */
export function Leaving({ isDirty, discard }: { isDirty: boolean; discard: () => void }) {
  const [target, setTarget] = useState<string | null>(null);
  const navigate = useNavigate();
  useEffect(() => {
    if (!isDirty) return;
    const close = (event: BeforeUnloadEvent) => event.preventDefault();
    const click = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
      const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0);
      if (!(link instanceof HTMLAnchorElement) || !isPlain || link.target) return;
      if (link.origin !== location.origin || link.pathname === location.pathname) return;
      event.preventDefault();
      event.stopPropagation();
      setTarget(link.pathname + link.search + link.hash);
    };
    window.addEventListener("beforeunload", close);
    document.addEventListener("click", click, true);
    return () => {
      window.removeEventListener("beforeunload", close);
      document.removeEventListener("click", click, true);
    };
  }, [isDirty]);
  if (target === null) return null;
  return (
    <Dialog title="Leave with unsaved changes?" close={() => setTarget(null)}>
      <p>They are kept in this tab until you come back, or discard them.</p>
      <div className="row choices">
        <button type="button" onClick={() => setTarget(null)}>
          Stay
        </button>
        <button
          type="button"
          className="danger"
          onClick={() => {
            discard();
            navigate(target);
          }}
        >
          Discard and leave
        </button>
        <button type="button" className="primary" onClick={() => navigate(target)}>
          Leave and keep them
        </button>
      </div>
    </Dialog>
  );
}
