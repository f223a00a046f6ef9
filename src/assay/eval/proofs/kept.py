"""A file of proofs: what was found of each case, to go on after an interruption.

One line is one case, as JSON. A line is written when everything of its case has been tried, and is
on the disk before the next; one that was torn is dropped when the file is opened again. A proof is
taken over only for the very same case: what it says and all files that it rests on, its lock file,
its image, the number of repeats, and the version of assay. What could not be tried is tried again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from assay.errors import (
    AssayError,
    InputError,
    Location,
    LockedError,
    ProvisionError,
    StoreError,
)
from assay.eval.proofs.proof import CaseProof
from assay.eval.workspaces.images import find_engine
from assay.graders.digest import framed
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import read_json
from assay.tasks.case import Case
from assay.tasks.case_files import is_inside
from assay.tasks.task import Task
from assay.types.codec import ShapeError, from_json, to_json
from assay.version import __version__

_MOST = 1 << 28


class KeptProofs:
    """What a file keeps of cases, and what is added to it.

    Attributes:
        before: What it says of cases that are still the same, by their ids.
    """

    def __init__(
        self, path: str, file: IO[bytes], tasks: Sequence[Task], repeats: int | None
    ) -> None:
        self._path, self._file, self._repeats = path, file, repeats
        self._images: dict[str, str] = {}
        # Before anything is tried: what changes meanwhile is another case.
        self._cases = {one.work.id: one.work for one in tasks if isinstance(one.work, Case)}
        self._basis = {name: self._basis_of(case) for name, case in self._cases.items()}
        self.before = {
            proof.case: proof
            for proof, key in self._read()
            if proof.verdict in ("held", "failed") and key and key == self._key(proof.case)
        }

    @classmethod
    @contextmanager
    def opened(cls, path: str, tasks: Sequence[Task], repeats: int | None) -> Generator[Self]:
        """The proofs in a file, which nobody else adds to meanwhile; a new one if there is none.

        Args:
            path: The file.
            tasks: What is to be proven.
            repeats: How often graders run, where that was given.

        Raises:
            InputError: It holds something else.
            LockedError: Another self-test is writing it.
            StoreError: It cannot be written.
        """
        for task in tasks:
            if isinstance(task.work, Case) and is_inside(path, task.work.root):
                hint = "a case consists of all files in its directory; name one outside of it"
                raise InputError(f"{path} lies in the case {task.work.id!r}", hint=hint)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
        with os.fdopen(handle, "r+b") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise InputError(f"{path} is no file")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LockedError(f"{path}: another self-test is writing it") from error
            yield cls(path, file, tasks, repeats)

    def add(self, proof: CaseProof) -> None:
        """Keep what was found of a case."""
        said = {"assay": __version__, "key": self._key(proof.case), "proof": to_json(proof)}
        try:
            self._file.write(json.dumps(said).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error

    def _read(self) -> Iterator[tuple[CaseProof, str]]:
        """Every line; the file is left at its end, without a last line that was torn."""
        name = self._path
        text = self._file.read(_MOST + 1)
        if len(text) > _MOST:
            raise InputError(f"{name} is larger than {_MOST >> 20} MiB")
        whole, _, torn = text.rpartition(b"\n")
        lines = whole.split(b"\n") if whole else []
        if torn and not (lines or torn.startswith(b'{"assay": ')):
            raise InputError(f"{name} is no file of proofs; it was not changed")
        found: list[tuple[CaseProof, str]] = []
        for number, line in enumerate(lines, 1):
            place = Location(file=name, line=number)
            said = read_json(line.decode("utf-8", "replace"), place, wrong="this is no proof")
            try:
                read = said if isinstance(said, dict) else {}
                found.append((from_json(CaseProof, read.get("proof")), str(read.get("key") or "")))
            except ShapeError as error:
                hint = "choose another file; this one was not changed"
                raise InputError("this is no proof", location=place, hint=hint) from error
        self._file.truncate(len(text) - len(torn))
        self._file.seek(0, os.SEEK_END)
        yield from found

    def _key(self, name: str) -> str:
        """What a proof of a case rests on; empty where that cannot be told."""
        basis, case = self._basis.get(name, ""), self._cases.get(name)
        if not basis or case is None:
            return ""
        lock = Path(case.lock_file)
        try:
            decided = lock.read_bytes() if lock.is_file() else b""
            image = self._image(case.image.image) if case.image else ""
        except (OSError, ProvisionError):
            return ""
        return hashlib.sha256(framed(basis.encode(), decided, image.encode())).hexdigest()

    def _basis_of(self, case: Case) -> str:
        if any(spec.kind.grader.models_of(spec.options) for spec in case.graders):
            return ""  # what a model says does not rest on the case alone
        try:
            said: list[Json] = [__version__, self._repeats, case.digest]
        except AssayError:
            return ""
        return json.dumps(said)

    def _image(self, name: str) -> str:
        """The id of an image, which a tag does not tell; empty until it is here."""
        if not self._images.get(name):
            self._images[name] = find_engine().find(name)
        return self._images[name]
