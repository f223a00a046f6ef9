import { Suspense } from "react";
import { Button } from "../../parts/Button";
import { Actions, Dialog } from "../../parts/Dialog";
import { moment } from "../../parts/figures";
import { Loading } from "../../parts/Loading";
import { later } from "../../parts/later";
import type { Grader } from "../queries";

const CompareView = later(() => import("./CompareView"));

/** Somebody saved a version meanwhile: shows both and lets one choose. */
export function Conflict({ theirs, texts, overwrite, take, close }: ConflictProps) {
  const { number, note, created_by: by, created_at: at } = theirs.latest;
  const [their, my] = texts;
  return (
    <Dialog title={`Version ${number} was saved meanwhile`} close={close} isWide>
      <p className="mb-3">
        {by ? `${by} saved it` : "It was saved"} {moment(at)}
        {note && <>: “{note}”</>}. Yours is not lost.
      </p>
      <Suspense fallback={<Loading />}>
        <CompareView before={their} after={my} names={[`${theirs.key}@${number}`, "Yours"]} />
      </Suspense>
      <Actions>
        <Button onPress={close}>Go on editing</Button>
        <Button tone="danger" onPress={take}>
          Take version {number}, discard mine
        </Button>
        <Button tone="primary" onPress={overwrite}>
          Save mine as version {number + 1}
        </Button>
      </Actions>
    </Dialog>
  );
}

interface ConflictProps {
  theirs: Grader;
  /** What they saved, and what is saved over it. */
  texts: readonly [string, string];
  overwrite: () => void;
  take: () => void;
  close: () => void;
}
