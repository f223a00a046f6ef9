"""What the author's reference was seen to need where tests are judged apart.

While the reference is proven, the judge writes down, for every way by which a test came to
something (a *trail*, such as ``kit.load().name``), what it found there. The contract stands in the
case's lock file; a submission gets what the reference needed, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from assay.errors import InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.types.codec import from_json, to_json

if TYPE_CHECKING:
    from assay.graders.testing.outcomes import Mode, TestRun

FILES = "files:"
"""The entry, outside of any test, of a reference whose tests share temporary files with it."""

_OBJECTS = ("object:", "op:", "said:")
_COUNTED = "said"
"""Entries of this kind end in a number; of several runs the largest stays."""


@frozen(kw_only=True)
class Contract:
    """What a reference needed."""

    # Seed of the near misses that equality and order are asked about; the same for every grading,
    # so that a regrade is no second chance.
    seed: str = ""
    # By test function, without its parameters, entries ``kind:trail``; the test is empty for what
    # happens outside of tests, such as the import of test modules.
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    learns: bool = False
    # How many tests the reference's run had of a declared test (``tests/a.py::test_b``) where its
    # source does not say it, and of a file beyond those that it declares; None where that is not
    # known.
    variants: Mapping[str, int] | None = None
    # Tests that the reference itself skips while they run. They do not count.
    skips: tuple[str, ...] = ()

    @property
    def shares_files(self) -> bool:
        """Whether both sides see one directory for temporary files."""
        return self.learns or any(FILES in entries for entries in self.needs.values())

    @property
    def objects(self) -> tuple[str, ...]:
        """The tests that rest on what objects of the submission say, not on values alone."""
        return tuple(
            test
            for test, entries in self.needs.items()
            if test and any(entry.startswith(_OBJECTS) for entry in entries)
        )

    @classmethod
    def read(cls, data: Json) -> Contract:
        """Read one."""
        contract = from_json(cls, data)
        for test, count in (contract.variants or {}).items():
            if count < 1:
                raise InputError(f"contract: {test!r} cannot have {count} variants")
        return contract

    def to_json(self) -> Json:
        """Its JSON form, in which it stands in lock files and briefs."""
        return to_json(self)

    @classmethod
    def of_runs(
        cls,
        seed: str,
        runs: Iterable[Mapping[str, Iterable[str]]],
        variants: Iterable[Mapping[str, int]] = (),
    ) -> Contract:
        """What several runs of the reference needed together, and the most variants they had."""
        found: dict[str, dict[str, int | None]] = {}
        for needed in runs:
            for test, entries in needed.items():
                for entry in entries:
                    name, number = _read_entry(entry)
                    kept = found.setdefault(test, {})
                    before = kept.get(name)
                    kept[name] = number if before is None else max(before, number or 0)
        needs = {
            test: tuple(
                sorted(name if most is None else f"{name}:{most}" for name, most in kept.items())
            )
            for test, kept in sorted(found.items())
        }
        had: dict[str, int] = {}
        told = [*variants]
        for run in told:
            had |= {test: max(count, had.get(test, 0)) for test, count in run.items()}
        return cls(seed=seed, needs=needs, variants=dict(sorted(had.items())) if told else None)


def contract_of(given: Mapping[str, Json] | None, mode: Mode) -> Contract | None:
    """The contract that a grader is given."""
    if given:
        return Contract.read(dict(given))
    if mode == "process":
        raise InputError(
            "isolation: process needs the contract of a reference",
            hint="record a reference and run assay selftest, or hand in a contract from Python",
        )
    return None


def values_label(contract: Contract | None, run: TestRun) -> dict[str, Json]:
    """Of how many expected tests all that they come to is a value: ``31 of 34 tests``."""
    if contract is None or contract.learns or run.isolation != "process":
        return {}
    objects = {*contract.objects}
    found = sum(objects.isdisjoint(_units(name)) for name in run.expected)
    return {"values": f"{found} of {len(run.expected)} tests"}


def _units(name: str) -> set[str]:
    """What may stand for a test in a contract: its function, or in Node its whole file."""
    return {name, name.partition("[")[0], name.partition("::")[0]}


def _read_entry(entry: str) -> tuple[str, int | None]:
    if not entry.startswith(f"{_COUNTED}:"):
        return entry, None
    name, _, number = entry.rpartition(":")
    return name, int(number)
