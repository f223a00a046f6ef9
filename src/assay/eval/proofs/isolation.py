"""Which tests are judged in a process of their own: read from a case's lock file.

``isolation: auto`` is resolved here, before any agent starts and outside of any workspace, by
replacing the options of the graders; ``process`` that the author wrote gets its contract in the
same way. What decides is the author's reference (see `assay.eval.proofs.isolation_proof`), never a
submission: graders look at no lock, and nothing falls back while they grade. It fails closed: what
could have been judged apart is ``shared`` only if the reference has shown that it must be, or if
there is no reference that could show anything.

The lock file lies beside the case file, to be kept with it. Where the directory cannot be written,
it lies in the cache instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast

from assay.errors import GraderError, InputError, nearest
from assay.frozen import frozen
from assay.graders.digest import declared_digest, framed
from assay.graders.spec import GraderSpec
from assay.graders.testing.contract import Contract
from assay.graders.testing.outcomes import BOUNDARY, Mode, separable_runners
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import read_json
from assay.tasks.case import REFERENCES, Case
from assay.tasks.case_files import tree_digest
from assay.types.codec import from_json, to_json

_ABOUT = "Made by assay from the reference recording; keep it with the case. See docs/selftest.md."
_LARGEST = 1 << 24
_SHOWN = 5
_SAID = 300
_NO_REFERENCE = "no reference recording: run assay selftest"
_STALE = "is stale"
_NO_DECISION = "the lock file {}, and there is no reference recording to decide anew"
_WAY_PAST = (
    "{}; or the author of the case writes isolation: shared, which trusts the submission not to "
    "speak to its judge"
)
_RESOLVED = ("isolation", "contract")
"""Options that a decision sets, and does not rest on."""
_LISTS = re.compile(r'\[\s+("(?:[^"\\]|\\.)*"(?:,\s+"(?:[^"\\]|\\.)*")*)\s+\]')
_BASIS = ("source", "fixtures", "environment", "setup", "submission")
"""Blocks of a case that decide what the reference's tests run over."""


@frozen(kw_only=True)
class Why:
    """A test of the reference that fails when it is judged apart.

    Attributes:
        test: Its id; empty where the run as a whole failed.
        said: The first line of what it said.
    """

    test: str = ""
    said: str = ""

    def __str__(self) -> str:
        return ": ".join(text for text in (self.test, self.said) if text)


class UndecidedIsolationError(GraderError):
    """How tests are isolated could not be decided, so nothing may be graded by them."""


class ReferenceFailsError(UndecidedIsolationError):
    """The reference itself does not pass its tests, however they are isolated."""


class NotBegunError(UndecidedIsolationError):
    """The case cannot be begun: its source, its environment or its image cannot be had."""


class UnsteadyTestsError(UndecidedIsolationError):
    """The same work did not come to the same."""


@frozen(kw_only=True)
class IsolationDecision:
    """What was decided for one grader.

    Attributes:
        isolation: The mode.
        contract: What the reference needs of ``process``, and with it every submission.
        shuffle: Whether the reference passes in any order of the tests; without it, only in that
            of the source.
        why: What keeps its tests from ``process``.
        digest: Digest of what the decision rests on.
        reference: Digest of the reference recording. It need not be there any more: a case may be
            handed on without its solution.
    """

    isolation: Mode
    contract: Contract | None = None
    shuffle: bool = True
    why: tuple[Why, ...] = ()
    digest: str = ""
    reference: str = ""


@frozen(kw_only=True)
class _Document:
    """A lock file."""

    about: str = ""
    boundary: int
    graders: Mapping[str, IsolationDecision]


@frozen(kw_only=True)
class Isolated:
    """How one grader's tests are isolated.

    Attributes:
        grader: Its name.
        isolation: The mode.
        allow_equality: Classes of the submission whose equality is not questioned.
        why: Why it is not ``process``, where that was not the case's own choice.
        contract: What ``process`` permits.
    """

    grader: str
    isolation: Mode
    allow_equality: tuple[str, ...] = ()
    why: str = ""
    contract: Contract | None = None

    def __str__(self) -> str:
        allowed = f", allow_equality {', '.join(self.allow_equality)}"
        text = f"{self.grader}: {self.isolation}{allowed if self.allow_equality else ''}"
        return f"{text}, because {self.why}" if self.why else text


@frozen
class _Slot:
    """One grader whose mode is to be decided."""

    place: int
    name: str
    spec: GraderSpec
    separable: bool


class CaseLock:
    """The modes of one case's graders: what its lock file says, and what is decided anew.

    Args:
        case: The case.
        cache: Directory for decisions that cannot be kept with the case.
        own: Whether the graders are the case's own; those of others leave its lock file alone.

    Raises:
        SourceError: If a file that a decision rests on cannot be read.
    """

    def __init__(self, case: Case, cache: str | None = None, *, own: bool = True) -> None:
        self.case = case
        self.reference = ""
        self._cache = cache
        self._own = own
        self._slots = _slots(case)
        self._found: dict[int, IsolationDecision] = {}
        self._digests: dict[int, str] = {}
        self._reference_digest = ""
        self._seeds: dict[int, str] = {}
        self._lapsed = False
        self._state = _STALE
        self.stale = False
        if any(slot.separable for slot in self._slots):
            self._look()

    @property
    def undecided(self) -> tuple[int, ...]:
        """Places of the graders that could be judged apart, and nobody decided whether."""
        return tuple(
            slot.place for slot in self._slots if slot.separable and slot.place not in self._found
        )

    @property
    def shared(self) -> tuple[int, ...]:
        """Places of the graders that were decided to share a process."""
        return tuple(place for place, one in self._found.items() if one.isolation == "shared")

    @property
    def problem(self) -> str:
        """What keeps the modes from being decided by the lock file alone; empty for nothing."""
        names = [slot.name for slot in self._slots if slot.place in self.undecided]
        if not names:
            return ""
        missing = f"the lock file {self._state}" if self.stale else "there is no lock file"
        rest = "" if self.reference else ", and no reference recording to decide by"
        return f"{missing}{rest}: how to isolate the tests of {', '.join(names)} is not known"

    def seed(self, place: int) -> str:
        """The seed of a contract: that of an earlier decision on the same basis, or a new one."""
        return self._seeds.get(place) or secrets.token_hex(8)

    def asks_for_process(self, place: int) -> bool:
        """Whether the author wrote ``process``, so that nothing else will do."""
        return self.case.graders[place].options.get("isolation") == "process"

    def keep(self, decided: Mapping[int, IsolationDecision]) -> str:
        """Take decisions, and write them down.

        Returns:
            The file they were written to; empty where nothing changed.
        """
        before = dict(self._found)
        for place, decision in decided.items():
            found = self._found.get(place)
            if found and found.isolation == decision.isolation:
                continue  # what a test said may differ from run to run: that is not news
            self._found[place] = replace(
                decision, digest=self._digests[place], reference=self._reference_digest
            )
        return self._write() if self._found != before else ""

    def resolved(self, reasons: Mapping[int, UndecidedIsolationError] | None = None) -> Case:
        """The case with every grader in the mode that was decided.

        Args:
            reasons: Why nothing could be decided, by the place of the grader.

        Raises:
            UndecidedError: If the tests of a grader could be judged apart, and nobody knows that
                they must not be.
        """
        if not self._slots:
            return self.case
        graders = list(self.case.graders)
        for slot in self._slots:
            graders[slot.place] = self._resolve(slot, (reasons or {}).get(slot.place))
        return replace(self.case, graders=tuple(graders))

    def _resolve(self, slot: _Slot, reason: UndecidedIsolationError | None) -> GraderSpec:
        spec, decision = slot.spec, self._found.get(slot.place)
        said = reason.message if reason else ""
        if refused := slot.separable and self._refused(slot, decision, said):
            kind = type(reason) if reason and refused == said else UndecidedIsolationError
            raise kind(
                f"case {self.case.id!r}: how to isolate the tests of {slot.name} is not decided: "
                f"{refused}",
                hint=_WAY_PAST.format(self._remedy),
            ) from reason
        options = {**spec.options, "isolation": "shared"}
        if decision and not decision.shuffle:
            options["shuffle"] = False
        if decision is None or decision.isolation == "shared":
            why = _in_words(decision.why) if decision else self._reason(slot)
            if decision and (counted := _counted(decision.contract)):
                options["contract"] = counted.to_json()
            return replace(spec, options=options, said={"isolation_reason": why})
        contract = decision.contract or Contract()
        options |= {"isolation": "process", "contract": contract.to_json()}
        return replace(spec, options=options)

    def _refused(self, slot: _Slot, decision: IsolationDecision | None, reason: str) -> str:
        """Why a grader may not run; empty where it may."""
        if decision is not None:
            must = self.asks_for_process(slot.place) and decision.isolation == "shared"
            said = f"it says isolation: process, but {_in_words(decision.why)}"
            return said if must else ""
        if reason:
            return reason
        if self.reference:
            return f"the lock file {self._state}" if self.stale else "there is no lock file yet"
        if self._lapsed:
            held = "was" if self._state == _STALE else "may have been"
            return _NO_DECISION.format(f"{self._state}, what it held {held} judged apart")
        return _NO_REFERENCE if self.asks_for_process(slot.place) else ""

    def _reason(self, slot: _Slot) -> str:
        if not slot.separable:
            return f"only {separable_runners()} can be judged in a process of their own"
        return _NO_DECISION.format(self._state) if self.stale else _NO_REFERENCE

    @property
    def _remedy(self) -> str:
        """What the author of a case does where nothing could be decided."""
        if self.reference:
            return "correct that and run assay selftest"
        again = f"record right work as {self.case.root}/recordings/reference and run assay selftest"
        if not self.stale:
            return again
        file = self.case.lock_file
        if self._state != _STALE:
            return f"{again}, which writes {file} anew; or bring back the file that it was"
        return f"{again}, which writes {file} anew; or bring back the tests and files it is of"

    def _look(self) -> None:
        """Find the decisions that still hold."""
        from assay.agents.replay import recordings_of

        case = self.case
        with suppress(
            InputError
        ):  # one that is named may have been taken out: see `IsolationDecision`
            self.reference = reference_of(case)
        if self.reference:
            recording = recordings_of(str(Path(case.root, "recordings")))[self.reference]
            self._reference_digest = tree_digest(str(recording))
        basis = _basis(case)
        for slot in self._slots:
            if slot.separable:
                options = {k: v for k, v in slot.spec.options.items() if k not in _RESOLVED}
                declared = declared_digest(replace(slot.spec, options=options))
                whole = hashlib.sha256(framed(basis, declared.encode()))
                self._digests[slot.place] = whole.hexdigest()
        beside = _read(case.lock_file) if self._own else ""
        cached = _read(self._cache_file) if self._cache else ""
        for slot in self._slots:
            for document in (beside, cached):
                decision = (
                    document.graders.get(slot.name) if isinstance(document, _Document) else None
                )
                if decision is None or decision.digest != self._digests.get(slot.place):
                    continue
                if decision.contract:
                    self._seeds.setdefault(slot.place, decision.contract.seed)
                if not self.reference or decision.reference == self._reference_digest:
                    self._found.setdefault(slot.place, decision)
        self.stale = bool(self.undecided) and self._own and Path(case.lock_file).is_file()
        # What cannot be read, or is another version's, may have said anything.
        is_unread = isinstance(beside, str)
        self._state = beside if is_unread and beside else _STALE
        self._lapsed = self.stale and (
            is_unread or any(one.isolation == "process" for one in beside.graders.values())
        )

    @property
    def _cache_file(self) -> str:
        parts = [*self._digests.values(), self._reference_digest]
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return str(Path(self._cache or "", "isolation", f"{name}.json"))

    def _write(self) -> str:
        names = {slot.place: slot.name for slot in self._slots}
        graders = {names[place]: one for place, one in sorted(self._found.items())}
        document = _Document(about=_ABOUT, boundary=BOUNDARY, graders=graders)
        text = json.dumps(to_json(document), indent=2, ensure_ascii=False)
        text = (
            _LISTS.sub(lambda found: f"[{' '.join(map(str.strip, found[1].splitlines()))}]", text)
            + "\n"
        )
        places = [self.case.lock_file] if self._own else []
        if self._cache:
            places.append(self._cache_file)
        for file in places:
            with suppress(OSError):  # read-only, such as what was installed
                if file != self.case.lock_file:
                    Path(file).parent.mkdir(parents=True, exist_ok=True)
                _replace(file, text)
                return file
        return ""


Settle: TypeAlias = "Callable[[Sequence[CaseLock]], list[Case]]"
"""Resolves the modes of cases before they are run; it may decide those that are undecided."""


def settle_by_locks(locks: Sequence[CaseLock]) -> list[Case]:
    """Resolve by lock files alone.

    Raises:
        UndecidedError: Naming the cases of which that is not known, and could be.
    """
    found: list[Case | UndecidedIsolationError] = []
    for lock in locks:
        try:
            found.append(lock.resolved())
        except UndecidedIsolationError as error:
            found.append(error)
    return all_of(found)


def all_of(found: Sequence[Case | UndecidedIsolationError]) -> list[Case]:
    """The cases, if all of them are decided.

    Raises:
        UndecidedError: Naming those that are not.
    """
    errors = [one for one in found if isinstance(one, UndecidedIsolationError)]
    if errors:
        more = f"; and {len(errors) - _SHOWN} cases more" if len(errors) > _SHOWN else ""
        said = "; ".join(error.message for error in errors[:_SHOWN])
        raise UndecidedIsolationError(f"{said}{more}", hint=errors[0].hint)
    return [one for one in found if isinstance(one, Case)]


def settled(case: Case, cache: str | None = None) -> Case:
    """A case with every mode resolved by its lock file.

    Raises:
        UndecidedError: If that is not known, and could be.
    """
    return CaseLock(case, cache).resolved()


def is_by_default(spec: GraderSpec) -> bool:
    """Whether the tests of a resolved grader share a process because nobody knows better."""
    before, after = _NO_DECISION.split("{}")
    reason = str(spec.said.get("isolation_reason", ""))
    return reason == _NO_REFERENCE or (reason.startswith(before) and reason.endswith(after))


def isolated_graders(case: Case) -> list[Isolated]:
    """How the tests of each grader of a resolved case are isolated."""
    return [
        Isolated(
            grader=name,
            isolation="process" if spec.options.get("isolation") == "process" else "shared",
            allow_equality=tuple(cast("list[str]", spec.options.get("allow_equality") or [])),
            why=str(spec.said.get("isolation_reason", "")),
            contract=_contract_of(spec),
        )
        for name, spec in zip(_names(case.graders), case.graders, strict=True)
        if spec.kind.grader.separable(spec.options) is not None
    ]


def oracle_digest(case: Case) -> str:
    """A digest of a resolved case and of the modes that it is graded in."""
    modes: list[Json] = [
        [
            one.grader,
            one.isolation,
            [*one.allow_equality],
            one.contract.to_json() if one.contract else None,
        ]
        for one in isolated_graders(case)
        if one.isolation == "process" or one.contract
    ]
    if not modes:
        return case.digest
    return hashlib.sha256(f"{case.digest}\n{BOUNDARY}\n{json.dumps(modes)}".encode()).hexdigest()


def reference_of(case: Case) -> str:
    """The name of the reference recording; empty where there is none.

    Raises:
        InputError: If the case names one that does not exist.
    """
    from assay.agents.replay import recordings_of

    found = recordings_of(str(Path(case.root, "recordings")))
    named = case.selftest.reference
    if named and named not in found:
        raise InputError(
            f"case {case.id!r}: selftest.reference is {named!r}, but there is no such recording",
            hint=nearest(named, sorted(found)) or f"make {case.root}/recordings/{named}",
        )
    return named or next((name for name in REFERENCES if name in found), "")


def _counted(contract: Contract | None) -> Contract | None:
    """What changes the score of tests that share a process; None where nothing does."""
    if contract is None or (contract.variants is None and not contract.skips):
        return None
    return Contract(variants=contract.variants, skips=contract.skips)


def _contract_of(spec: GraderSpec) -> Contract | None:
    given = spec.options.get("contract")
    return Contract.read(given) if given is not None else None


def _slots(case: Case) -> list[_Slot]:
    slots: list[_Slot] = []
    for place, (name, spec) in enumerate(zip(_names(case.graders), case.graders, strict=True)):
        asked = spec.options.get("isolation", "auto")
        if asked == "shared" or "isolation" not in spec.kind.parameters:
            continue
        if asked == "process" and spec.options.get("contract") is not None:
            continue  # it is resolved, or somebody handed a contract in
        separable = spec.kind.grader.separable(spec.options, case.source_path)
        if separable is not None:
            slots.append(_Slot(place, name, spec, separable))
    return slots


def _names(specs: Sequence[GraderSpec]) -> Iterator[str]:
    """What graders are called, numbered where several are called the same."""
    labels = Counter(spec.label for spec in specs)
    seen: Counter[str] = Counter()
    for spec in specs:
        seen[spec.label] += 1
        many = labels[spec.label] > 1
        yield f"{spec.label}-{seen[spec.label]}" if many else spec.label


def _basis(case: Case) -> bytes:
    """A digest of what the tests of all graders run over."""
    blocks = {name: case.document.get(name) for name in _BASIS}
    if case.container is not None:
        blocks["container"] = case.document.get("container")
    whole = hashlib.sha256(
        framed(str(BOUNDARY).encode(), json.dumps(blocks, sort_keys=True).encode())
    )
    files = [case.source_path] if case.source_path else []
    for file in [*files, *case.requirement_files]:
        whole.update(tree_digest(file).encode())
    return whole.digest()


def _read(file: str) -> _Document | str:
    """A lock file; or what is wrong with it, and an empty text where there is none."""
    try:
        if not Path(file).is_file():
            return ""
        if Path(file).stat().st_size > _LARGEST:
            return "is too large"
        data = read_json(Path(file).read_text("utf-8"))
        made_by = data.get("boundary") if isinstance(data, dict) else None
        if isinstance(made_by, int) and made_by != BOUNDARY:
            return f"was written by another version of assay (boundary {made_by}, not {BOUNDARY})"
        found = from_json(_Document, data)
        for name, one in found.graders.items():
            contract = Contract.read(one.contract.to_json()) if one.contract else None
            if one.isolation == "process" and (contract is None or contract.learns):
                return (
                    f"cannot be read: graders.{name}.contract: what the reference needs is missing"
                )
    except (OSError, ValueError, RecursionError) as error:
        return f"cannot be read: {' '.join(str(error).split())[:_SAID]}"
    return found


def _replace(file: str, text: str) -> None:
    """Write a file so that whoever reads it finds the old text or the new one."""
    new = Path(f"{file}.{secrets.token_hex(4)}.new")
    try:
        new.write_text(text, "utf-8")
        new.replace(file)
    except OSError:
        with suppress(OSError):
            os.unlink(new)  # noqa: PTH108
        raise


def _in_words(why: Sequence[Why]) -> str:
    """Why the tests are not judged apart, in one line."""
    if not why:
        return "the reference does not pass them when judged in a separate process"
    more = f"; also {', '.join(one.test for one in why[1:])}" if len(why) > 1 else ""
    return f"{why[0]}{more}"
