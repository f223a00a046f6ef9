import { useLayoutEffect, useState } from "react";
import { useNavigate } from "react-router";
import { Button } from "../../parts/Button";
import { Actions, Dialog } from "../../parts/Dialog";

/** Asks before a page with unsaved changes is left. They are kept in the tab unless discarded. */
export function Leaving({ isDirty, discard }: { isDirty: boolean; discard: () => void }) {
  const [target, setTarget] = useState<string | null>(null);
  const navigate = useNavigate();
  // Before the next page is shown, not after: a link of it pressed at once would be held up by what is no longer there.
  useLayoutEffect(() => {
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
      <p className="m-0">They are kept in this tab until you come back, or discard them.</p>
      <Actions>
        <Button onPress={() => setTarget(null)}>Stay</Button>
        <Button
          tone="danger"
          onPress={() => {
            discard();
            navigate(target);
          }}
        >
          Discard and leave
        </Button>
        <Button tone="primary" onPress={() => navigate(target)}>
          Leave and keep them
        </Button>
      </Actions>
    </Dialog>
  );
}
