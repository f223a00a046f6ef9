import { Command } from "../parts/Command";
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
    <main className="page login stack">
      <h1 className="brand">
        <img src="/assets/icon.svg" alt="" />
        Log in to assay
      </h1>
      {isUsed && (
        <p role="alert" className="panel notice">
          This link was used already, or is of another start of the server. A link works once.
        </p>
      )}
      {hasEnded && !isUsed && (
        <p role="alert" className="panel notice">
          Your session has ended. All do when the server ends or their key is revoked; log in again
          and this page goes on where it was.
        </p>
      )}
      <LoginForm />
      <section className="panel">
        <h2>With the link</h2>
        <p>
          A server on your own machine prints a link when it starts, which logs in once. For a new
          link, start it again:
        </p>
        <Command text="assay view" />
      </section>
      <section className="panel">
        <h2>Without a key</h2>
        <p>Whoever runs the server makes one, for you to read, to grade or to manage it:</p>
        <Command text="assay server create keys NAME --role editor" />
      </section>
    </main>
  );
}
