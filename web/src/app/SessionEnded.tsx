import { Dialog } from "../parts/Dialog";
import { LoginForm } from "./LoginForm";

/** Over a page whose session ended: what stands there, and was written there, stays. */
export function SessionEnded() {
  return (
    <Dialog title="Your session has ended">
      <p>
        The server was started again, or the key was revoked or has expired. Log in to go on; the
        page is as you left it.
      </p>
      <LoginForm />
      <p className="soft">
        A link of the server, opened in another tab, does it, too: then{" "}
        <button type="button" onClick={() => window.location.reload()}>
          load the page again
        </button>
      </p>
    </Dialog>
  );
}
