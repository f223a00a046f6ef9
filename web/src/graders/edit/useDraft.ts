import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { api, ask, type Schemas } from "../../api/client";
import { useMay } from "../../api/me";
import { Problem } from "../../api/problem";
import type { JsonObject } from "../../parts/json";
import { type Grader, graderQuery, useForget } from "../queries";
import { keep, kept } from "./kept";

/** What a person writes of a grader. */
export interface Draft {
  key: string;
  name: string;
  description: string;
  feedbackKey: string;
  note: string;
  definition: JsonObject;
}

/** A draft as the tab keeps it: with the version that it was made from. */
interface Kept {
  draft: Draft;
  number: number;
}

/**
 * A grader being written: kept in the tab until it is saved, and saved as the next version of the
 * one that was seen.
 */
export function useDraft({ project, kind, grader, start, slot }: DraftProps) {
  const name = `assay.draft.${project}.${slot}`;
  const [left] = useState(() => kept<Kept>(name));
  const [base, setBase] = useState(grader);
  const stored = draftOf(base, start);
  const [draft, setDraft] = useState(left?.draft ?? stored);
  const [number, setNumber] = useState(left?.number ?? grader?.latest.number ?? 0);
  const [isRestored, setRestored] = useState(left !== null);
  const [resets, setResets] = useState(0);
  const [theirs, setTheirs] = useState<Grader | null>(null);
  const told = (useLocation().state as { saved?: string } | null)?.saved ?? "";
  const [saved, setSaved] = useState(told);
  const may = useMay("editor", project);
  const isLocked = base?.locked ?? false;
  const isReadOnly = !may || isLocked;
  const isDirty = !isReadOnly && JSON.stringify(draft) !== JSON.stringify(stored);
  const queries = useQueryClient();
  const forget = useForget();
  const navigate = useNavigate();

  useEffect(() => keep(name, isDirty ? { draft, number } : null), [name, isDirty, draft, number]);

  const reset = (to: Grader | null) => {
    keep(name, null);
    setBase(to);
    setNumber(to?.latest.number ?? 0);
    setDraft(draftOf(to, start));
    setRestored(false);
    setTheirs(null);
    setResets(resets + 1);
  };
  const save = useMutation({
    mutationFn: (over: number) => store(project, kind, draft, base, over),
    onSuccess: (made, over) => {
      const isNew = made.latest.number !== over;
      const said = isNew ? `Saved as version ${made.latest.number}` : "Saved";
      keep(name, null);
      queries.setQueryData(graderQuery(project, made.key).queryKey, made);
      forget(made.key);
      if (base === null) {
        const to = `/p/${project}/graders/${made.key}/edit${window.location.search}`;
        navigate(to, { replace: true, state: { saved: said } });
        return;
      }
      setBase(made);
      setNumber(made.latest.number);
      setDraft((before) => ({ ...before, note: "" }));
      setRestored(false);
      setTheirs(null);
      setSaved(said);
    },
    onError: async (error) => {
      if (!base || !(error instanceof Problem) || ![412, 423].includes(error.status)) return;
      const path = { project, key: base.key };
      const latest = await ask(
        api.GET("/api/v1/projects/{project}/graders/{key}", { params: { path } }),
      ).catch(() => null);
      if (latest?.locked) setBase({ ...base, locked: true });
      else if (latest && error.status === 412) setTheirs(latest);
    },
  });
  return {
    base,
    draft,
    stored,
    theirs,
    number,
    save,
    isDirty,
    isReadOnly,
    isLocked,
    /** Whether what is shown was left unsaved in this tab earlier. */
    isRestored: isRestored && isDirty,
    /** Grows when the draft is another one: what remembers anything of it is made anew. */
    resets,
    said: save.isPending ? "Saving …" : isDirty ? "Unsaved changes" : saved,
    change: (values: Partial<Draft>) => {
      setDraft((before) => ({ ...before, ...values }));
      setSaved("");
    },
    reset,
    goOn: () => setTheirs(null),
  };
}

/** What is stored, as a person sees it: names only where they are not the key. */
function draftOf(grader: Grader | null, start: JsonObject): Draft {
  const { key = "", name = "", description = "", feedback_key: feedbackKey = "" } = grader ?? {};
  return {
    key,
    name: name === key ? "" : name,
    description,
    feedbackKey: feedbackKey === key ? "" : feedbackKey,
    note: "",
    definition: grader ? (grader.latest.definition as JsonObject) : start,
  };
}

/** Stores a draft: a new grader, or a new version of the one that was seen. */
async function store(
  project: string,
  kind: string,
  draft: Draft,
  base: Grader | null,
  number: number,
): Promise<Grader> {
  const { key, note, definition } = draft;
  const path = { project, key };
  const said = {
    name: draft.name || key,
    description: draft.description,
    feedback_key: draft.feedbackKey || key,
  };
  const version = { kind, definition, note, samples: [] };
  if (base === null) {
    const body = { ...version, ...said, key } as Schemas["CreateGraderBody"];
    return ask(
      api.POST("/api/v1/projects/{project}/graders", { params: { path: { project } }, body }),
    );
  }
  const saved = await ask(
    api.PUT("/api/v1/projects/{project}/graders/{key}", {
      params: { path, header: { "if-match": `"${key}@${number}"` } },
      body: version as Schemas["UpdateGraderBody"],
    }),
  );
  const isDescribed =
    base.name === said.name &&
    base.description === said.description &&
    base.feedback_key === said.feedback_key;
  if (isDescribed) return saved;
  const described = await ask(
    api.PATCH("/api/v1/projects/{project}/graders/{key}", { params: { path }, body: said }),
  );
  return { ...saved, ...described };
}

interface DraftProps {
  project: string;
  kind: string;
  grader: Grader | null;
  /** What a new one begins as. */
  start: JsonObject;
  /** What tells this draft from others of the tab. */
  slot: string;
}
