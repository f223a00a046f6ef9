import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ask } from "../api/client";
import { noteLoggedIn } from "../api/connection";
import { meQuery } from "../api/me";

/** Asks for an API key, and logs in with it. */
export function LoginForm() {
  const queries = useQueryClient();
  const [key, setKey] = useState("");
  const [refusal, setRefusal] = useState("");
  const [isBusy, setBusy] = useState(false);

  const logIn = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefusal("");
    try {
      const before = queries.getQueryData(meQuery.queryKey);
      await ask(api.POST("/login", { body: { key: key.trim() } }));
      const after = await queries.fetchQuery({ ...meQuery, staleTime: 0 });
      if (before && before.id !== after.id) window.location.reload(); // what is shown was another's
      noteLoggedIn();
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };

  return (
    <form className="stack login-form" onSubmit={logIn}>
      <input type="text" autoComplete="username" value="assay" readOnly hidden />
      <label>
        <span>API key</span>
        <input
          type="password"
          autoComplete="current-password"
          placeholder="assay_…"
          maxLength={500}
          required
          autoFocus
          value={key}
          aria-invalid={refusal !== ""}
          aria-describedby={refusal ? "refusal" : undefined}
          onChange={(event) => setKey(event.target.value)}
        />
      </label>
      {refusal && (
        <p role="alert" id="refusal" className="refusal">
          {refusal}
        </p>
      )}
      <div>
        <button type="submit" className="primary" disabled={isBusy || key.trim() === ""}>
          Log in
        </button>
      </div>
    </form>
  );
}
