import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { noteSilence, whenBack } from "../api/connection";

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
    } catch {
      noteSilence();
      await whenBack();
      return await load();
    }
  });
}
