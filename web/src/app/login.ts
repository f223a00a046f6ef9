import { api, ask } from "../api/client";

/** An address of this page that another one named; the overview if it is somebody else's. */
export function ownAddress(named: string | null): string {
  try {
    const url = new URL(named ?? "/", window.location.origin);
    if (url.origin !== window.location.origin || url.pathname.startsWith("//")) return "/";
    return url.pathname === "/login" ? "/" : url.pathname + url.search + url.hash;
  } catch {
    return "/";
  }
}

/** Ends the session; the page begins anew, so that nothing of it stays in memory. */
export async function logOut(): Promise<void> {
  await ask(api.POST("/logout"));
  const here = window.location.pathname + window.location.search;
  window.location.assign(`/login?next=${encodeURIComponent(here)}`);
}
