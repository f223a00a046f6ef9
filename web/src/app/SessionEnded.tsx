import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { noteLoggedIn } from "../api/connection";
import { meQuery } from "../api/me";
import { Dialog } from "../parts/Dialog";
import { LoginForm } from "./LoginForm";

/** Over a page whose session ended: what stands there, and was written there, stays. */
export function SessionEnded() {
  const queries = useQueryClient();
  useEffect(() => {
    const look = () => {
      queries.fetchQuery({ ...meQuery, staleTime: 0, retry: false }).then(noteLoggedIn, () => {});
    };
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  }, [queries]);
  return (
    <Dialog title="Your session has ended">
      <p className="mt-0 mb-4">
        The server was started again, or the key was revoked or has expired. Log in to go on; the
        page is as you left it.
      </p>
      <LoginForm />
      <p className="mt-4 text-sm text-soft">
        Or open the new link that the server printed, in another tab, and come back here.
      </p>
    </Dialog>
  );
}
