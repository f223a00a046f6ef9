import {
  UNSTABLE_ToastContent as Content,
  UNSTABLE_ToastQueue as Queue,
  UNSTABLE_ToastRegion as Region,
  UNSTABLE_Toast as Toast,
} from "react-aria-components";
import { IconButton } from "./Button";

const queue = new Queue<string>({ maxVisibleToasts: 3 });
const STAYS = 5_000;

/** Says in a corner that something is done, for some seconds; what failed stands where it was done. */
export function toast(said: string): void {
  queue.add(said, { timeout: STAYS });
}

export function Toasts() {
  return (
    <Region
      queue={queue}
      className="fixed right-4 bottom-4 z-50 grid gap-2 outline-none max-md:inset-x-4 max-md:bottom-20"
    >
      {({ toast: one }) => (
        <Toast
          toast={one}
          className="flex items-center justify-between gap-4 rounded-lg bg-ink py-2 pr-2 pl-4 text-page shadow-over"
        >
          <Content>{one.content}</Content>
          <IconButton slot="close" icon="close" label="Close" />
        </Toast>
      )}
    </Region>
  );
}
