/** How the scores of a run are distributed. */
export default function ScoresTab({ run }: { run: string }) {
  return <p className="soft">The scores of run {run} are not shown yet.</p>;
}
