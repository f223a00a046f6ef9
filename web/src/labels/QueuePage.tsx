import { useProject } from "../api/me";
import { useAddress } from "../parts/address";
import { QueueStart } from "./QueueStart";
import { QueueWork } from "./QueueWork";

/** What is labelled, how, and until when, where the address says nothing. */
const USUAL = {
  dataset: "",
  run: "",
  field: "label",
  classes: "PASS,FAIL,NA",
  criterion: "",
  seed: 0,
  rater: "",
  goal: 0,
  grader: "",
};

export type QueueAddress = typeof USUAL;

/** A queue of answers to label, or the form that begins one. */
export default function QueuePage() {
  const project = useProject();
  const [address, change] = useAddress(USUAL);
  if (!address.dataset && !address.run) {
    return (
      <QueueStart
        project={project}
        address={address}
        begin={(asked) => change(asked, { isStep: true })}
      />
    );
  }
  return <QueueWork key={JSON.stringify(address)} project={project} address={address} />;
}
