import { Button } from "./Button";

/** The rest of a list that comes in parts. */
export function More({ found, what }: { found: Parts; what: string }) {
  if (!found.hasNextPage) return null;
  return (
    <div className="mt-4">
      <Button isDisabled={found.isFetching} onPress={() => void found.fetchNextPage()}>
        {what}
      </Button>
    </div>
  );
}

interface Parts {
  hasNextPage: boolean;
  isFetching: boolean;
  fetchNextPage: () => Promise<unknown>;
}
