import { Command } from "../parts/Command";

/** Shown where nobody is logged in. */
export function LoginPage() {
  return (
    <main className="page login stack">
      <h1>Log in</h1>
      <p>
        Open the link that the server printed when it was started. It works once; a new start prints
        another one.
      </p>
      <Command text="assay serve" />
    </main>
  );
}
