import { useMutation } from "@tanstack/react-query";
import { Dialog } from "./Dialog";
import { ProblemBox } from "./ProblemBox";

/** A file that is to be saved. */
interface Saved {
  name: string;
  parts: BlobPart[];
  type: string;
}

/** Saves a file once it was made, if there is one; `problem` is shown where it could not be made. */
export function useSaving(make: () => Promise<Saved | null>) {
  const saving = useMutation({
    mutationFn: make,
    onSuccess: (made) => {
      if (!made) return;
      const address = URL.createObjectURL(new Blob(made.parts, { type: made.type }));
      Object.assign(document.createElement("a"), { href: address, download: made.name }).click();
      window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
    },
  });
  return {
    save: () => saving.mutate(),
    isPending: saving.isPending,
    problem: saving.error && (
      <Dialog title="Nothing was exported" close={saving.reset}>
        <ProblemBox problem={saving.error} />
      </Dialog>
    ),
  };
}
