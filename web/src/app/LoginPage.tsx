import { Command } from "../parts/Command";
import { Notice } from "../parts/Page";
import { usePageTitle } from "../parts/title";
import { LoginForm } from "./LoginForm";

/**
 * Shown where nobody is logged in, at whatever address; that is where it goes on.
 *
 * @param hasEnded Whether somebody was.
 */
export function LoginPage({ hasEnded }: { hasEnded: boolean }) {
  usePageTitle("Log in");
  const isUsed = new URLSearchParams(window.location.search).has("once");
  return (
    <main className="mx-auto grid max-w-md gap-6 px-4 py-[12vh]">
      <div>
        <img src="/assets/icon.svg" alt="" className="mb-4 size-10" />
        <h1 className="m-0 text-xl font-semibold tracking-tight">Log in to assay</h1>
      </div>
      {(isUsed || hasEnded) && (
        <div role="alert">
          <Notice>
            {isUsed
              ? "This link was used already, or is of another start of the server. A link works once."
              : "Your session has ended. All do when the server ends or their key is revoked; log in again and this page goes on where it was."}
          </Notice>
        </div>
      )}
      <LoginForm />
      <dl
        className="m-0 grid gap-5 border-t border-line pt-6 text-sm text-soft [&_dd]:m-0 [&_dd]:mt-1 [&_dt]:font-medium
        [&_dt]:text-ink"
      >
        <div>
          <dt>With the link</dt>
          <dd>
            A server on your own machine prints a link when it starts, which logs in once. For a new
            one, start it again:
          </dd>
          <dd>
            <Command text="assay view" />
          </dd>
        </div>
        <div>
          <dt>Without a key</dt>
          <dd>Whoever runs the server makes one, for you to read, to grade or to manage it:</dd>
          <dd>
            <Command text="assay server create keys NAME --role editor" />
          </dd>
        </div>
      </dl>
    </main>
  );
}
