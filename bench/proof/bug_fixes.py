"""Twenty repaired bugs of Boltons: the repair passes its tests, the source before it does not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from bench.proof.material import Case, Difference, Source
from bench.proof.suites import Exercise, proven

ABOUT = "twenty repairs pass the tests that came with them, and the bugs do not"
SOURCE = Source("mahmoud/boltons", "967864f89791509f9eb36b22b4579d36b72a6df2", "BSD-3-Clause")
DIFFERENCES: tuple[Difference, ...] = ()
_FIXES = (
    "ec1ff9f6728f5f857402b294c218be731c62af5f",
    "c1c25da365cf14878cf5317147e7a09b5d124df5",
    "f1034b07ddf71f4d9285134a47a4ade16fe40789",
    "eb659013fbe4f355561fbead2116868366ba6e26",
    "ead236e278ca0466bf468de746b5960fb12d7e5b",
    "1e61524a798ea73632029a013a7686036d5c126f",
    "55dfe5077bcb5fa76611b5f2a557ea6c442ad87c",
    "ebc7a8f776debfa33f0b380b57a444bca75a251b",
    "d0a284fc7ef1aebceb54798600d73be4eeb76ed8",
    "609cabe932a1ea1423b24568644945abb1b8bb84",
    "4aa77cddb5d06def130df6f09aefab4018fa487c",
    "c463d1633a075c398d6ffad7d8653064a615b696",
    "766b5547392fe8d54c1e000098499dc556bb5cb7",
    "8a2a93d8213e1fa4da30c8167ab1a18caad17a17",
    "f9c4f30511b58c543bda7e4c04193fd480f68b24",
    "6cac49ce4eba506a3582e8089bcc347c6b2fa70f",
    "4815fc8dd1768da5f2d903846d2ab994aa57b0cf",
    "c2b04b4cb16410d7bf9ff781c78dee3ca908dc32",
    "8ba3a7fa0d99b73f7f43c1aed82c571b941eecea",
    "93185b224ebd60df01df88d64e574a3f651987c5",
)
"""Commits of 2022 to 2026 that repair a bug in one or two modules and bring tests of it."""


def cases(directory: Path) -> Iterator[Case]:
    """Each check of each repair; a commit that the clone lacks is left out."""
    there = [fix for fix in _FIXES if _git(directory, "cat-file", "-t", fix) == "commit\n"]
    return proven(_exercise(directory, fix) for fix in there)


def _exercise(directory: Path, fix: str) -> Exercise:
    changed = _git(directory, "diff", "--name-only", "--diff-filter=AM", f"{fix}^", fix).split()
    modules = [name for name in changed if PurePosixPath(name).parent.name == "boltons"]
    tests = [name for name in changed if PurePosixPath(name).match("tests/test_*.py")]
    source = _git(directory, "ls-tree", "--name-only", f"{fix}^", "boltons/").split()
    subject = PurePosixPath(modules[0]).stem
    return Exercise(
        f"{subject}-{fix[:7]}",
        _texts(directory, f"{fix}^", [name for name in source if name.endswith(".py")]),
        _texts(directory, fix, tests),
        _texts(directory, fix, modules),
    )


def _texts(directory: Path, commit: str, names: Sequence[str]) -> dict[str, str]:
    return {name: _git(directory, "show", f"{commit}:{name}") for name in names}


def _git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    return done.stdout
