"""Twenty repaired bugs of Boltons: the repair passes its tests, the source before it does not.

Of a test file those tests count that came with the repair or were changed by it. The others say
nothing of the bug, and some ask the submission 20,000 questions. Repairs whose own tests do so,
or compare the order of a set, are not among the twenty.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from bench.proof.material import Case, Difference, Source
from bench.proof.suites import Exercise, proven

ABOUT = "twenty repairs pass the tests that came with them, and the bugs do not"
SOURCE = Source("mahmoud/boltons", "967864f89791509f9eb36b22b4579d36b72a6df2", "BSD-3-Clause")
AGREE, OF = 117, 120
DIFFERENCES = (
    Difference(
        "dictutils-ebc7a8f/apart",
        "by design",
        "The test compares two objects of the submission, and only its own code could say equal.",
        "*so only code of boltons.dictutils.OrderedMultiDict would decide*",
    ),
    Difference(
        "fileutils-55dfe50/apart",
        "by design",
        "The tests look into the directory of the submission's module, which lies elsewhere.",
    ),
    Difference(
        "funcutils-b5c495b/apart",
        "assay",
        "The submission asks for the defaults of a test's function, and is told the names alone.",
    ),
)
_FIXES = (
    "b5c495bec206741ec25cd82ecc869e0b59bb0d10",
    "1f37cce42f8d3146342ccbd45492d3b3d9c52698",
    "435774ef8b10c1355bf77483a837945034011754",
    "c1c25da365cf14878cf5317147e7a09b5d124df5",
    "f1034b07ddf71f4d9285134a47a4ade16fe40789",
    "eb659013fbe4f355561fbead2116868366ba6e26",
    "ead236e278ca0466bf468de746b5960fb12d7e5b",
    "1e61524a798ea73632029a013a7686036d5c126f",
    "55dfe5077bcb5fa76611b5f2a557ea6c442ad87c",
    "ebc7a8f776debfa33f0b380b57a444bca75a251b",
    "d0a284fc7ef1aebceb54798600d73be4eeb76ed8",
    "8c3fc2850693eacd2f2f8c95e7581adbb65b1269",
    "4aa77cddb5d06def130df6f09aefab4018fa487c",
    "c463d1633a075c398d6ffad7d8653064a615b696",
    "766b5547392fe8d54c1e000098499dc556bb5cb7",
    "8a2a93d8213e1fa4da30c8167ab1a18caad17a17",
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
    listed = _git(directory, "ls-tree", "-r", "--name-only", fix, "boltons", "tests").split()
    source = [name for name in listed if PurePosixPath(name).match("boltons/*.py")]
    texts = [name for name in listed if name.endswith(".txt")]
    before, after = (_texts(directory, commit, tests) for commit in (f"{fix}^", fix))
    return Exercise(
        f"{PurePosixPath(modules[0]).stem}-{fix[:7]}",
        _texts(directory, f"{fix}^", source),
        {**_texts(directory, fix, texts), **after},
        _texts(directory, fix, modules),
        grader={"type": "swebench", "fail_to_pass": _changed(before, after)},
    )


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The ids of the tests that were not there before, or not as they are."""
    return [
        f"{name}::{test}"
        for name, text in after.items()
        for test, body in _tests(text).items()
        if _tests(before[name]).get(test) != body
    ]


def _tests(text: str) -> dict[str, str]:
    """The tests of a file and of its classes: how each is written, by its id."""
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        owner = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test"):
                found[owner + one.name] = ast.dump(one)
    return found


def _texts(directory: Path, commit: str, names: Sequence[str]) -> dict[str, str]:
    """Files as they were at a commit; an empty text for one that was not there."""
    return {name: _git(directory, "show", f"{commit}:{name}") for name in names}


def _git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    return done.stdout
