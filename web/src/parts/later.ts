import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { noteSilence, whenBack } from "../api/connection";

const OUTDATED = "The server has another version of this page by now: load it again.";
const MISSED = "A part of this page did not arrive from the server: load the page again.";

/**
 * A component that is loaded when it is first shown, as `lazy` of React; but nothing is asked of a
 * server that does not answer: browsers keep what could not be had until the page is loaded again.
 */
// biome-ignore lint/suspicious/noExplicitAny: as React declares it
export function later<T extends ComponentType<any>>(
  load: () => Promise<{ default: T }>,
): LazyExoticComponent<T> {
  return lazy(async () => {
    await whenBack();
    try {
      return await load();
    } catch (error) {
      // A file that came does not fit those that are here: the server was upgraded meanwhile.
      if (error instanceof SyntaxError) throw new Error(OUTDATED);
      noteSilence();
      await whenBack();
      return await load().catch(() => {
        throw new Error(MISSED);
      });
    }
  });
}
