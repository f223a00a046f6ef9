"""Declared graders sent to another machine, with the files that they name.

A file that the other machine has with the same content is used where it is. Any other is written
below a directory of the worker, under its own path; records name that path without the directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from assay.errors import GraderError, InputError, SandboxUnavailableError
from assay.graders.digest import files_of, grader_digest
from assay.graders.paths import moved_paths
from assay.graders.spec import GraderSpec

_MAX_BYTES = 64 << 20
_IN_SANDBOX = frozenset({"function", "openai_python"})


@dataclass(frozen=True, slots=True)
class SentGraders:
    """Declared graders, with what another machine needs to run them.

    Attributes:
        specs: As they were declared.
        digests: The digest of each on the machine that sends it.
        files: The content of the files that they name, by path.
    """

    specs: tuple[GraderSpec, ...]
    digests: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, specs: Sequence[GraderSpec]) -> Self:
        """Read what they name.

        Raises:
            GraderError: If a file cannot be read.
            InputError: If there is too much of it to be sent.
        """
        # A path is written below a directory of the worker's, which "../" must not lead out of.
        specs = [_moved(spec, os.path.abspath) for spec in specs]
        found: dict[str, bytes] = {}
        for path in sorted({path for spec in specs for path in files_of(spec)}):
            for file in [path] if Path(path).is_file() else _beneath(path):
                found[file] = Path(file).read_bytes()
                if sum(map(len, found.values())) > _MAX_BYTES:
                    raise InputError(
                        f"the files of the graders have more than {_MAX_BYTES >> 20} MiB",
                        hint="grade with --engine local",
                    )
        return cls(tuple(specs), tuple(map(grader_digest, specs)), tuple(found.items()))

    def unpacked(self, place: str) -> tuple[GraderSpec, ...]:
        """The graders, declared for this machine once it is known to be able to run them.

        Args:
            place: Directory for files that are not here.

        Raises:
            AssayError: One cannot run here, or would not be the same.
        """
        require_sandbox(self.specs)
        if any(not _is_there(path, content) for path, content in self.files):
            for path, content in self.files:
                there = Path(f"{place}{path}")
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(content)
            specs = tuple(_moved(spec, partial(str.__add__, place)) for spec in self.specs)
        else:
            specs = self.specs
        for spec, digest in zip(specs, self.digests, strict=True):
            if grader_digest(spec) != digest:
                raise GraderError(
                    f"grader {spec.label!r} is not the same here: its code differs",
                    hint="install the same assay, and the same modules of one's own",
                )
        return specs


def _beneath(path: str) -> list[str]:
    return sorted(f"{directory}/{name}" for directory, _, names in os.walk(path) for name in names)


def _is_there(path: str, content: bytes) -> bool:
    try:
        return Path(path).read_bytes() == content
    except OSError:
        return False


def _moved(spec: GraderSpec, change: Callable[[str], str]) -> GraderSpec:
    known = spec.kind.parameters
    options = {
        name: moved_paths(known[name].annotation, option, change) if name in known else option
        for name, option in spec.options.items()
    }
    return replace(spec, options=options)


def require_sandbox(specs: Sequence[GraderSpec]) -> None:
    """Check that this machine can isolate functions, if any grader is one.

    Raises:
        SandboxUnavailableError: They cannot.
    """
    if not any(spec.type in _IN_SANDBOX for spec in specs):
        return
    from assay.sandbox.functions.tiers import function_tiers

    found = function_tiers()
    if found.tier is None:
        failed = found.checks[0]
        raise SandboxUnavailableError(
            f"functions cannot be isolated here: {failed.detail}", hint=failed.fix
        )
