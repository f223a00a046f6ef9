"""Trajectories of the Agent Trajectory Interchange Format, ``ATIF-v1.0`` to ``v1.8``.

A newer minor version is read too, with a note. Steps marked ``is_copied_context`` repeat an
earlier trajectory: they are kept and marked, and count for nothing. A subagent whose trajectory is
elsewhere, or a trajectory that is continued elsewhere, leaves a part missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import cast

from assay.agents.transcripts.document import (
    Notes,
    amount,
    count,
    listing,
    mapping,
    text_of,
    texts_of,
)
from assay.agents.transcripts.transcript import (
    CallDraft,
    Calls,
    Drafts,
    Transcript,
    TranscriptEnd,
    arguments_of,
    make_transcript,
    numbered,
    tokens_of,
)
from assay.errors import InputError
from assay.graders.usage import COPIED, RunUsage
from assay.scoring.json_safe import Json
from assay.types.trace import (
    AnyStep,
    Source,
    Step,
    SubagentStep,
    TokenSample,
    Trace,
    Usage,
    last_words,
)

FORMAT = "atif"

_VERSION = re.compile(r"ATIF-v(\d{1,4})\.(\d{1,4})")
_NEWEST_MINOR = 8
_DEEPEST = 8
_SOURCES: Mapping[str, Source] = {"system": "system", "user": "user", "agent": "agent"}
_KEYS = frozenset(
    {"schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics"}
    | {"extra", "continued_trajectory_ref", "subagent_trajectories"}
)
_STEP_KEYS = frozenset(
    {"step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "extra"}
    | {"reasoning_content", "tool_calls", "observation", "metrics"}
    | {"is_copied_context", "llm_call_count"}
)


def is_trajectory(value: Json) -> bool:
    """Whether a value can only be such a trajectory."""
    version = mapping(value).get("schema_version")
    return isinstance(version, str) and version.startswith("ATIF-")


def read(value: Json, notes: Notes) -> Transcript:
    """Read a trajectory.

    Raises:
        InputError: For a version that is not 1, or no steps.
    """
    document = mapping(value)
    _check_version(document, notes)
    if not isinstance(document.get("steps"), list):
        raise InputError("an ATIF trajectory needs a list of 'steps'")
    reading = _Reading(notes)
    trajectory = reading.trajectory(document, 0)
    agent = mapping(document.get("agent"))
    outcome = TranscriptEnd(
        answer=trajectory.answer,
        status="completed",
        totals=trajectory.totals,
        session={
            "session_id": text_of(document.get("session_id")),
            "agent": text_of(agent.get("name")),
            "model": text_of(agent.get("model_name")),
        },
    )
    return make_transcript(FORMAT, trajectory.steps, outcome, notes)


def _check_version(document: Mapping[str, Json], notes: Notes) -> None:
    said = text_of(document.get("schema_version")) or ""
    version = _VERSION.fullmatch(said)
    if version is None or version[1] != "1":
        raise InputError(f"cannot read a trajectory of version {said[:40]!r}", hint="ATIF-v1.x")
    if int(version[2]) > _NEWEST_MINOR:
        notes.add(f"version {said} is newer than ATIF-v1.{_NEWEST_MINOR}")


class _Trajectory:
    """One trajectory, read: its own steps, and what it used with its subagents."""

    def __init__(self, steps: list[AnyStep], totals: RunUsage) -> None:
        self.steps = steps
        self.totals = totals
        self.answer = last_words(step for step in steps if step.extra.get(COPIED) is not True)


class _Reading:
    """One document in the course of being read."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def trajectory(self, document: Mapping[str, Json], depth: int) -> _Trajectory:
        """Read a trajectory and those of its subagents."""
        notes = self.notes
        for key in document.keys() - _KEYS:
            notes.add(f"unknown field {key!r} of a trajectory")
        if document.get("continued_trajectory_ref") is not None:
            notes.lack("the trajectory is continued in another file")
        calls = Calls(notes)
        drafts = Drafts(calls)
        usages: list[Usage] = []
        references: dict[int, list[str]] = {}
        for entry in listing(document.get("steps")):
            self._step(mapping(entry), drafts, usages, references)
        calls.close()
        subagents = self._subagents(document, depth)
        steps = self._placed(drafts, subagents, references)
        own = _sum_of(usages)
        totals = _totals(document, own, [s.totals for s in subagents.values()], notes)
        return _Trajectory(steps, totals)

    def _step(
        self,
        step: Mapping[str, Json],
        drafts: Drafts,
        usages: list[Usage],
        references: dict[int, list[str]],
    ) -> None:
        """Take in one step."""
        for key in step.keys() - _STEP_KEYS:
            self.notes.add(f"unknown field {key!r} of a step")
        copied = step.get("is_copied_context") is True
        extra: dict[str, Json] = {COPIED: True} if copied else {}
        source = text_of(step.get("source")) or ""
        said = texts_of(step.get("message"))
        when = text_of(step.get("timestamp"))
        observation = listing(mapping(step.get("observation")).get("results"))
        if source != "agent":
            if source not in _SOURCES:
                self.notes.lack(f"a step of source {source[:40]!r}")
            shown: Json = {"role": source, "content": said}
            role = _SOURCES.get(source, "system")
            drafts.entries.append(
                Step(source=role, messages=(shown,), started_at=when, extra=extra)
            )
            self._observe(observation, drafts, {}, references)
            return
        turn = drafts.turn()
        turn.extra, turn.started_at = extra, when
        turn.model = text_of(step.get("model_name"))
        turn.texts += [said] if said else []
        thought = text_of(step.get("reasoning_content"))
        turn.reasoning += [thought] if thought else []
        turn.usage = self._usage(step)
        turn.sample = _sample(mapping(step.get("metrics")), self.notes)
        if not copied:
            usages.append(turn.usage)
        own: dict[str, CallDraft] = {}
        for entry in listing(step.get("tool_calls")):
            call = mapping(entry)
            draft = drafts.call(
                turn,
                name=text_of(call.get("function_name")) or "",
                arguments=arguments_of(call.get("arguments"), self.notes),
                call_id=text_of(call.get("tool_call_id")) or "",
            )
            draft.extra = extra
            own.setdefault(draft.call.id, draft)
        self._observe(observation, drafts, own, references)

    def _observe(
        self,
        results: list[Json],
        drafts: Drafts,
        own: Mapping[str, CallDraft],
        references: dict[int, list[str]],
    ) -> None:
        """Give results to the calls of the same step first: ids may come again in later steps."""
        for entry in results:
            result = mapping(entry)
            call_id = text_of(result.get("source_call_id"))
            for reference in listing(result.get("subagent_trajectory_ref")):
                named = mapping(reference)
                keys = ("trajectory_id", "session_id")
                name = next((text for k in keys if (text := text_of(named.get(k)))), "")
                references.setdefault(len(drafts.entries), []).append(name)
            if call_id is None:
                continue
            if call_id in own and own[call_id].result is None:
                own[call_id].answer(result.get("content"), is_error=False, notes=self.notes)
            else:
                drafts.answer(call_id, result.get("content"))

    def _usage(self, step: Mapping[str, Json]) -> Usage:
        metrics = mapping(step.get("metrics"))
        notes = self.notes
        return Usage(
            prompt_tokens=count(metrics.get("prompt_tokens"), notes, "prompt_tokens"),
            completion_tokens=count(metrics.get("completion_tokens"), notes, "completion_tokens"),
            cached_tokens=count(metrics.get("cached_tokens"), notes, "cached_tokens"),
            cost_usd=amount(metrics.get("cost_usd"), notes, "cost_usd"),
            llm_call_count=count(step.get("llm_call_count"), notes, "llm_call_count"),
        )

    def _subagents(self, document: Mapping[str, Json], depth: int) -> dict[str, _Trajectory]:
        found: dict[str, _Trajectory] = {}
        for number, entry in enumerate(listing(document.get("subagent_trajectories"))):
            if depth >= _DEEPEST:
                self.notes.lack("subagents are nested too deeply")
                break
            inner = mapping(entry)
            name = text_of(inner.get("trajectory_id")) or text_of(inner.get("session_id")) or ""
            name = name if name and name not in found else f"subagent {number}"
            found[name] = self.trajectory(inner, depth + 1)
        return found

    def _placed(
        self,
        drafts: Drafts,
        subagents: Mapping[str, _Trajectory],
        references: Mapping[int, list[str]],
    ) -> list[AnyStep]:
        """The steps, each subagent after the step that tells of it; those untold of at the end."""
        waiting = {name: found.steps for name, found in subagents.items()}
        steps: list[AnyStep] = []
        for number, step in enumerate(drafts.steps(), 1):
            steps.append(step)
            for name in references.get(number, ()):
                if name in waiting:
                    trace = Trace(steps=numbered(waiting.pop(name)))
                    steps.append(SubagentStep(subagent=trace, name=name))
                elif name not in subagents:
                    self.notes.lack("the trajectory of a subagent is not in the file")
        for name, inner in waiting.items():
            steps.append(SubagentStep(subagent=Trace(steps=numbered(inner)), name=name))
        return steps


def _sample(metrics: Mapping[str, Json], notes: Notes) -> TokenSample | None:
    """Token ids and log-probabilities, where they go with each other."""
    ids = [listing(metrics.get(f"{of}_token_ids")) for of in ("prompt", "completion")]
    logprobs = listing(metrics.get("logprobs"))
    if not any(ids) and not logprobs:
        return None
    are_ids = all(type(one) is int and one >= 0 for listed in ids for one in listed)
    if not are_ids or not all(type(one) in (int, float) for one in logprobs):
        notes.add("token ids or log-probabilities are not numbers")
        return None
    return TokenSample(
        prompt_token_ids=tuple(cast("list[int]", ids[0])),
        output_token_ids=tuple(cast("list[int]", ids[1])),
        output_logprobs=tuple(float(one) for one in cast("list[float]", logprobs)),
    )


def _sum_of(usages: list[Usage]) -> RunUsage:
    """Sum of the steps' usage, known where every step that called a model says its part."""
    calls = [usage for usage in usages if usage.llm_call_count != 0]
    costs = [usage.cost_usd for usage in calls]
    return RunUsage(
        tokens=tokens_of(calls) if calls or not usages else 0,
        cost_usd=sum(c or 0.0 for c in costs) if None not in costs and usages else None,
    )


def _totals(
    document: Mapping[str, Json], own: RunUsage, subagents: list[RunUsage], notes: Notes
) -> RunUsage:
    """The larger of what the file says in the end and what its steps and subagents add up to.

    The format leaves open whether the final metrics cover subagents.
    """
    final = mapping(document.get("final_metrics"))
    parts = ("total_prompt_tokens", "total_completion_tokens")
    counts = [count(final.get(part), notes, part) for part in parts]
    said = None if None in counts else sum(n or 0 for n in counts)
    cost = amount(final.get("total_cost_usd"), notes, "total_cost_usd")
    tokens = [own.tokens, *(inner.tokens for inner in subagents)]
    costs = [own.cost_usd, *(inner.cost_usd for inner in subagents)]
    added = None if None in tokens else sum(n or 0 for n in tokens)
    paid = None if None in costs else sum(c or 0.0 for c in costs)
    if said is not None and added is not None and added > said:
        notes.add("the final tokens are less than those of the steps")
    return RunUsage(
        tokens=max((n for n in (said, added) if n is not None), default=None),
        cost_usd=max((c for c in (cost, paid) if c is not None), default=None),
        seconds=_seconds(listing(document.get("steps"))),
    )


def _seconds(steps: list[Json]) -> float | None:
    times = [text_of(mapping(step).get("timestamp")) for step in (*steps[:1], *steps[-1:])]
    if len(times) < 2 or None in times:
        return None
    try:
        start, end = (datetime.fromisoformat(time or "") for time in times)
        seconds = (end - start).total_seconds()
    except (ValueError, TypeError):
        return None
    return seconds if seconds >= 0 else None
