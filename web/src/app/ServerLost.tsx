import { useConnection } from "../api/connection";

/** Says that the server does not answer, for as long as it does not. */
export function ServerLost() {
  const { isLost } = useConnection();
  return (
    <div role="status" aria-live="assertive">
      {isLost && (
        <p className="lost">
          <strong>The server does not answer.</strong> The page goes on by itself when it is back.
        </p>
      )}
    </div>
  );
}
