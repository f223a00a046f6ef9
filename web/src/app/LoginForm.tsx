import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ask } from "../api/client";
import { noteLoggedIn } from "../api/connection";
import { meQuery } from "../api/me";
import { Button } from "../parts/Button";
import { INPUT } from "../parts/Field";

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
    <form className="grid gap-3" onSubmit={logIn}>
      <input type="text" autoComplete="username" value="assay" readOnly hidden />
      <label className="grid gap-1 font-medium">
        API key
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
          className={`${INPUT} font-normal`}
        />
      </label>
      {refusal && (
        <p role="alert" id="refusal" className="m-0 text-fail">
          {refusal}
        </p>
      )}
      <Button type="submit" tone="primary" isDisabled={isBusy || key.trim() === ""}>
        Log in
      </Button>
    </form>
  );
}
