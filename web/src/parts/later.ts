import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { noteSilence, whenBack } from "../api/connection";

const OUTDATED = "The server has another version of this page by now: load it again.";

/**
 * A component that is loaded when it is first shown, as `lazy` of React; but one that cannot be
 * had because the server does not answer is waited for.
 */
// biome-ignore lint/suspicious/noExplicitAny: as React declares it
export function later<T extends ComponentType<any>>(
  load: () => Promise<{ default: T }>,
): LazyExoticComponent<T> {
  return lazy(async () => {
    try {
      return await load();
    } catch (error) {
      // A file that came does not fit those that are here: the server was upgraded meanwhile.
      if (error instanceof SyntaxError) throw new Error(OUTDATED);
      noteSilence();
      await whenBack();
      return await load();
    }
  });
}
