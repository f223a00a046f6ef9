import { useParams, useSearchParams } from "react-router";
import { usePageTitle } from "../parts/title";
import "./labels.css";
import { QueueStart } from "./QueueStart";
import { QueueWork } from "./QueueWork";

export interface QueueAddress {
  dataset: string;
  run: string;
  field: string;
  classes: string;
  criterion: string;
  seed: number;
  rater: string;
  goal: number;
  grader: string;
}

/** What is labelled, how, and until when: all of it stands in the address. */
function addressOf(search: URLSearchParams): QueueAddress {
  const number = (name: string) => Math.max(0, Math.trunc(Number(search.get(name)) || 0));
  return {
    dataset: search.get("dataset") ?? "",
    run: search.get("run") ?? "",
    field: search.get("field") || "label",
    classes: search.get("classes") || "PASS,FAIL,NA",
    criterion: search.get("criterion") ?? "",
    seed: number("seed"),
    rater: search.get("rater") ?? "",
    goal: number("goal"),
    grader: search.get("grader") ?? "",
  };
}

export default function QueuePage() {
  usePageTitle("Label");
  const { project = "default" } = useParams();
  const [search] = useSearchParams();
  const address = addressOf(search);
  if (!address.dataset && !address.run) return <QueueStart project={project} address={address} />;
  return <QueueWork key={search.toString()} project={project} address={address} />;
}
