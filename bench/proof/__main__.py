"""``python -m bench.proof``: repeat what ``docs/proof.md`` says."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from bench.proof.material import Proof, prove

PROOFS = (
    "json_schema",
    "json_parsing",
    "math_verify",
    "exercism_python",
    "polyglot",
    "hud_graders",
    "quixbugs",
    "bug_fixes",
    "evouna",
    "junit_reports",
    "inspect_scorers",
    "handlebars",
    "agentevals",
    "pydantic_evals",
    "bfcl",
    "promptfoo",
    "rouge",
)
"""The proofs, each a file beside this one."""
LONG = ("exercism_python", "polyglot", "quixbugs", "bug_fixes")
"""Those that keep what is proven until they are through."""


def load(name: str) -> Proof:
    """The module of a proof, by its name."""
    return cast("Proof", importlib.import_module(f"bench.proof.{name}"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the cases of a proof, or list the proofs.

    Returns:
        0 where as many cases agree as ``docs/proof.md`` says, and every difference has a known
        reason; 1 otherwise; 2 for arguments that make no sense; 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    if options.name is None:
        for name in PROOFS:
            proof = load(name)
            print(f"{name}: {proof.ABOUT} ({proof.SOURCE.repository}, {proof.SOURCE.licence})")
        return 0
    proof = load(options.name)
    if options.directory is None:
        here = proof.SOURCE.repository.rpartition("/")[2]
        print(f"{proof.SOURCE.clone}\npython -m bench.proof {options.name} {here}")
        return 0
    if not options.directory.is_dir():
        print(
            f"{options.directory} is no directory. Clone it first:\n{proof.SOURCE.clone}",
            file=sys.stderr,
        )
        return 2
    began = time.monotonic()
    try:
        result = prove(options.name, proof, options.directory)
    except KeyboardInterrupt:
        goes_on = options.name in LONG
        more = " The same command goes on where it stopped." if goes_on else ""
        print(f"{options.name} was interrupted.{more}", file=sys.stderr)
        return 130
    if table := result.table():
        print(f"{table}\n")
    print(f"{result.line()} ({time.monotonic() - began:.0f} s)")
    for complaint in result.complaints():
        print(complaint, file=sys.stderr)
    return 0 if result.holds else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.proof",
        description="Try what others' material expects on assay. Without a name, list the proofs; "
        "with a name alone, print the commands that repeat it.",
    )
    parser.add_argument("name", nargs="?", choices=PROOFS, help="which proof")
    parser.add_argument("directory", nargs="?", type=Path, help="a clone of its repository")
    return parser


if __name__ == "__main__":
    sys.exit(main())
