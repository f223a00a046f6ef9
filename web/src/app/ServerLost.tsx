import { useConnection } from "../api/connection";

/** Says that the server does not answer, for as long as it does not. */
export function ServerLost() {
  const { isLost } = useConnection();
  return (
    <div role="status" aria-live="assertive" className="sticky top-13 z-20 max-md:top-0">
      {isLost && (
        <p className="m-0 bg-error-soft px-4 py-2 text-error md:px-8">
          <strong>The server does not answer.</strong> The page goes on by itself when it is back.
        </p>
      )}
    </div>
  );
}
