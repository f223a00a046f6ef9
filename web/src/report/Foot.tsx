/** What anybody should know of the file. */
export function Foot() {
  return (
    <footer className="border-t border-line px-4 py-3 text-sm text-soft md:px-8">
      Written by assay. Intervals are 95 %; means are over graded cells, and say of how many. This
      file asks nothing of any network.
    </footer>
  );
}
