/** What anybody should know of the file. */
export function Foot() {
  return (
    <footer className="soft">
      Written by assay. Intervals are 95 %; means are over graded cells, and say of how many. This
      file asks nothing of any network.
    </footer>
  );
}
