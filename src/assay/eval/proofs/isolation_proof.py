"""Decide by the author's reference which tests can be judged in a process of their own.

The reference is played once, and what it left is graded again and again:

1. While everything is permitted and written down: in the order of the source, and shuffled twice.
   The union of what was needed is the contract. Where only the order of the source passes, that is
   kept. Once more while all containers are changed that the tests have in their hands: those that
   fail look at them.
2. Under that contract, as a submission is graded. If all tests pass, it is ``process``.
3. Where the same tests fail in two trials, for reasons of their own, and pass in one process with
   the reference, it is ``shared``.

Everything else is an error of the case. What fails because of the machine, or now and then, is no
reason to trust a submission more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from assay.eval.harnesses import agent_for
from assay.eval.planning import Planned
from assay.eval.proofs.isolation import (
    CaseLock,
    IsolationDecision,
    NotBegunError,
    ReferenceFailsError,
    UndecidedIsolationError,
    UnsteadyTestsError,
    Why,
    all_of,
)
from assay.eval.rollout import STARTING
from assay.graders.testing.contract import Contract
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.tasks.case import Case
from assay.tasks.task import case_task
from assay.types.run import Run

if TYPE_CHECKING:
    from assay.eval.proofs.trials import Arena

_EAGER = "eager:"
"""Lets a test make its objects at once, in its order: what such a test of the reference needs."""

_SCRAMBLES, _KEEPS = "scrambles:", "keeps:"
"""Changes what tests have in their hands after every call; marks those that fail of it."""

_MOST_TESTS = 10
_LONGEST = 200
_ROUNDING = 1e-9

_OF_THE_MACHINE = re.compile(
    r"No space left on device|Cannot allocate memory|Too many open files|Errno (12|24|28)\b"
    r"|\b(ENOSPC|ENOMEM|EMFILE)\b|\bMemoryError\b|can't start new thread"
    r"|the process of the solution ended|did not answer within|the session has ended"
)
"""What says nothing of a test: a machine without room, a host that died or did not answer."""

Tell: TypeAlias = "Callable[[Case, str], None]"


async def decide(
    locks: Sequence[CaseLock], place: Arena, *, tell: Tell | None = None
) -> list[Case]:
    """Decide what is undecided, and resolve every case.

    Args:
        locks: The cases.
        place: Where references are played.
        tell: Called with each case whose reference was played, and with the file that a new
            decision was written to, or an empty string.

    Raises:
        UndecidedError: Naming the cases that could not be decided.
    """
    return all_of(await decide_each(locks, place, tell=tell))


async def decide_each(
    locks: Sequence[CaseLock], place: Arena, *, again: bool = False, tell: Tell | None = None
) -> list[Case | UndecidedIsolationError]:
    """The same; in the place of a case that cannot be decided stands why.

    With `again`, ``process`` is tried also where ``shared`` was decided before.
    """
    turn = asyncio.Semaphore(place.workers)

    async def one(lock: CaseLock) -> Case | UndecidedIsolationError:
        places = (*lock.undecided, *(lock.shared if again else ()))
        try:
            if not places or not lock.reference:
                return lock.resolved()
            proof = _Proof(lock, place)
            async with turn:
                for grader in places:
                    await proof.run(grader)
            file = lock.keep(proof.decided)
            case = lock.resolved(proof.reasons)
        except UndecidedIsolationError as error:
            return error
        if tell:
            tell(case, file)
        return case

    return list(await asyncio.gather(*map(one, locks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one grading of the reference came to.

    Attributes:
        failed: The tests that did not pass; none if it is whole.
        skips: The tests that skipped themselves, and do not count.
        trouble: Why it says nothing of the tests; empty where it does.
        needs: What was needed.
        variants: How many tests there were of what declares them; None where that is not told.
    """

    failed: tuple[Why, ...] = ()
    skips: tuple[str, ...] = ()
    trouble: str = ""
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict[str, "Sequence[str]"])
    variants: Mapping[str, int] | None = None

    @property
    def is_whole(self) -> bool:
        return not self.failed and not self.trouble

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(why.test for why in self.failed)


@dataclass(slots=True)
class _Proof:
    """One reference, played once and graded as often as it takes."""

    lock: CaseLock
    place: Arena
    decided: dict[int, IsolationDecision] = field(default_factory=dict[int, IsolationDecision])
    reasons: dict[int, UndecidedIsolationError] = field(
        default_factory=dict[int, UndecidedIsolationError]
    )
    _played: Run | None = None

    async def run(self, place: int) -> None:
        """Find a mode for the grader at a place."""
        try:
            self.decided[place] = await self._decision(place)
        except UndecidedIsolationError as error:
            self.reasons[place] = error

    async def _decision(self, place: int) -> IsolationDecision:
        """What the reference shows.

        Raises:
            UndecidedError: It shows nothing.
        """
        seed = self.lock.seed(place)
        learning: dict[str, Json] = {
            "isolation": "process",
            "contract": Contract(seed=seed, learns=True).to_json(),
        }
        kept: dict[str, Json] = {"shuffle": False} if self._may_shuffle(place) else {}
        runs = [await self._grade(place, {**learning, **kept})]
        if runs[0].is_whole and kept:
            shuffled = [await self._grade(place, learning) for _ in range(2)]
            if all(run.is_whole for run in shuffled):
                runs, kept = [*runs, *shuffled], {}
        if len(runs) == 1:  # what passes only as it is written, and what has to fail twice
            runs.append(await self._grade(place, {**learning, **kept}))
        if not all(run.is_whole for run in runs):
            return await self._shared(place, runs[0], runs[1])
        keeps = await self._keeps(place, {**learning, **kept}, seed)
        tried: list[_Seen] = []
        for more in (0, 2):
            runs += [await self._grade(place, {**learning, **kept}) for _ in range(more)]
            if not all(run.is_whole for run in runs):
                raise UnsteadyTestsError(_unsteady(runs))
            eager = _by_function(tried, _EAGER)
            keeps = {test: entry for test, entry in keeps.items() if test not in eager}
            contract = _contract(seed, runs, eager, keeps)
            own: dict[str, Json] = {"isolation": "process", "contract": contract.to_json()}
            tried.append(await self._grade(place, {**own, **kept}))
            if tried[-1].is_whole:
                return IsolationDecision(isolation="process", contract=contract, shuffle=not kept)
        return await self._shared(place, tried[0], tried[1])

    async def _keeps(
        self, place: int, learning: dict[str, Json], seed: str
    ) -> Mapping[str, Sequence[str]]:
        """The tests that fail once the containers in their hands are changed after every call."""
        contract = Contract(seed=seed, learns=True, needs={"": (_SCRAMBLES,)})
        try:
            seen = await self._grade(place, {**learning, "contract": contract.to_json()})
        except UndecidedIsolationError:  # what it came to says nothing of single tests
            return {}
        return _by_function([seen], _KEEPS)

    async def _shared(self, place: int, one: _Seen, other: _Seen) -> IsolationDecision:
        """Whether tests that fail apart pass in one process with the reference.

        Raises:
            UndecidedError: If that is not what was seen.
        """
        if one.tests != other.tests or not one.tests:
            raise UnsteadyTestsError(_unsteady([one, other]))
        if self.lock.asks_for_process(place):
            raise UndecidedIsolationError(f"it says isolation: process, but {_listed(one.failed)}")
        orders: list[dict[str, Json]] = [{}]
        if self._may_shuffle(place):
            orders.append({"shuffle": False})
        seen = one
        learning: dict[str, Json] = {"contract": Contract(learns=True).to_json()}
        for order in orders:
            seen = await self._grade(place, {"isolation": "shared", **learning, **order})
            if seen.is_whole:
                return IsolationDecision(
                    isolation="shared",
                    contract=_contract("", [replace(seen, needs={})]),
                    shuffle=not order,
                    why=one.failed[:_MOST_TESTS],
                )
        raise ReferenceFailsError(f"the reference does not pass its tests: {_listed(seen.failed)}")

    def _may_shuffle(self, place: int) -> bool:
        spec = self.lock.case.graders[place]
        return "shuffle" in spec.kind.parameters and spec.options.get("shuffle") is not False

    async def _grade(self, place: int, options: Mapping[str, Json]) -> _Seen:
        """What a grader with some options says of the reference.

        Raises:
            UndecidedError: If it says nothing of the tests.
        """
        case = self.lock.case
        spec = case.graders[place]
        spec = replace(spec, weight=1.0, gate=False, options={**spec.options, **options})
        task, played = case_task(replace(case, graders=(spec,))), self._played
        trial = Planned(
            task,
            "isolation",
            self.lock.reference,
            agent=agent_for("replay", task, None),
            again=None if played is None else lambda: played,
        )
        runs: list[Run] = []
        await self.place.run([trial], lambda _, run: runs.append(run))
        nodes = runs[0].grade.subscores
        if not nodes:  # it was not graded at all
            said = runs[0].grade.content or runs[0].trace.error or "no cause was recorded"
            kind = NotBegunError if said.startswith(f"[{STARTING}]") else UndecidedIsolationError
            raise kind(f"the reference could not be played: {said}")
        self._played = self._played or runs[0]
        seen = _seen(nodes[0])
        if seen.trouble:
            raise UndecidedIsolationError(f"the reference could not be graded: {seen.trouble}")
        return seen


def _by_function(runs: Sequence[_Seen], entry: str) -> Mapping[str, Sequence[str]]:
    """An entry for every test function that failed."""
    return {test.partition("[")[0]: [entry] for run in runs for test in run.tests}


def _contract(seed: str, runs: Sequence[_Seen], *needed: Mapping[str, Sequence[str]]) -> Contract:
    """What all runs of the reference needed together."""
    variants = [run.variants for run in runs if run.variants is not None]
    found = Contract.of_runs(seed, [*(run.needs for run in runs), *needed], variants)
    skips = {one for one in runs[0].skips if all(one in run.skips for run in runs)}
    return replace(found, skips=tuple(sorted(skips)))


def _seen(node: SubScore) -> _Seen:
    """Read the node of a grader of tests."""
    parts = (node, *(node.children or ()))
    rows = [row for part in parts for row in _rows(part)]
    failed = tuple(
        Why(test=str(row.get("id", ""))[:_LONGEST], said=_line(_said(row)))
        for row in rows
        if row.get("outcome") != "passed"
    )
    metadata = node.metadata or {}
    if _is_whole(node):
        needs, had = metadata.get("needs"), metadata.get("variants")
        variants = (
            {k: n for k, n in had.items() if isinstance(n, int)} if isinstance(had, dict) else None
        )
        skips = metadata.get("skips")
        return _Seen(
            skips=tuple(map(str, skips)) if isinstance(skips, list) else (),
            needs=_needs(needs) if isinstance(needs, dict) else {},
            variants=variants,
        )
    of_the_machine = next((row for row in rows if _OF_THE_MACHINE.search(_said(row))), None)
    trouble = ""
    if node.status != "scored":
        trouble = node.reason or node.status
    elif node.flags or metadata.get("why"):
        trouble = str(metadata.get("why") or ", ".join(node.flags))
    elif of_the_machine is not None:
        trouble = f"{of_the_machine.get('id')}: {_line(_said(of_the_machine))}"
    elif not failed:
        trouble = node.reason or "no test is named"
    return _Seen(
        failed=failed,
        trouble=trouble,
    )


def _is_whole(node: SubScore) -> bool:
    """Whether all expected tests of a grader passed."""
    full = node.status == "scored" and (node.value or 0.0) >= 1.0 - _ROUNDING
    return full and all(map(_is_whole, node.children or ()))


def _rows(node: SubScore) -> Iterator[Mapping[str, Json]]:
    """The tests of a node that count."""
    tests = (node.metadata or {}).get("tests")
    for row in tests if isinstance(tests, list) else []:
        if isinstance(row, dict) and "counted" not in row:
            yield row


def _said(row: Mapping[str, Json]) -> str:
    return str(row.get("message") or row.get("outcome") or "")


def _needs(given: Mapping[str, Json]) -> dict[str, list[str]]:
    return {
        test: [str(entry) for entry in entries]
        for test, entries in given.items()
        if isinstance(entries, list)
    }


def _listed(failed: Sequence[Why]) -> str:
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"{failed[0]}{more}" if failed else "no test is named"


def _unsteady(runs: Sequence[_Seen]) -> str:
    """In words, that runs of the same work did not come to the same."""
    said = [_listed(run.failed) if run.failed else "all passed" for run in runs]
    listed = "; ".join(dict.fromkeys(said))
    return f"the reference, judged apart, does not fail or pass in the same tests: {listed}"


def _line(text: str) -> str:
    """The first line that says something, bounded."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line), "")[:_LONGEST]
