"""``client.graders``: version, prove and use stored graders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.client.asking import M_co, Part, ask, ask_all, by_hand, like, warn_caller
from assay.client.errors import ServerError
from assay.client.grader_types import Function, GraderTypes, function_definition
from assay.client.portal import Portal
from assay.client.scope import Item, Scope, items_of, sized_items_of
from assay.errors import InputError, NotFoundError
from assay.scoring.graded import Graded
from assay.service import graders as operations
from assay.service.graders import Calibration

if TYPE_CHECKING:
    from assay.registry import Definition
    from assay.scoring.json_safe import Json
    from assay.scoring.validation import ValidationReport
    from assay.service.graders import GradedItems
    from assay.store import GraderRecord, GraderVersion

_MOST_BYTES = 8 << 20
"""Of the items of one request, unless it is one item; a server takes twice as much by default."""


class Grades(list[Graded]):
    """Outcomes in the order of the items, and the grader that gave them with its card.

    Attributes:
        calibration: The card, also one that is stale; None where the grader has none.
        grader: The grader and its version, such as ``exact@3``; empty if nothing was graded.
        digest: Of that version.
        seconds: How long each item was worked on, without waiting for its turn; none of a server
            that does not tell.
    """

    def __init__(
        self, graded: Iterable[Graded] = (), calibration: Calibration | None = None
    ) -> None:
        super().__init__(graded)
        self.calibration = calibration
        self.grader = self.digest = ""
        self.seconds: list[float | None] = []


class GradersPart(Part[M_co]):
    """``client.graders``.

    Attributes:
        create: Store a grader, by type.
    """

    called = "graders"

    def __init__(self, scope: Scope, portal: Portal | None) -> None:
        super().__init__(scope, portal)
        self.create: GraderTypes[M_co] = GraderTypes(scope, portal)

    list = ask_all(operations.list_graders)
    versions = ask_all(operations.list_versions)
    describe = ask(operations.describe_grader)
    lock = ask(operations.lock_grader)
    diff = ask(operations.diff_versions, lambda found: found.diff)
    calibration = ask(operations.show_grader, lambda found: found.calibration)

    @by_hand
    async def get(self, grader_key: str, *, project: str | None = None) -> GraderRecord | None:
        """A grader with its newest version, or None."""
        try:
            return (
                await self._scope.call(operations.show_grader, grader_key, project=project)
            ).record
        except NotFoundError:
            return None

    @by_hand
    async def version(
        self, grader_key: str, number: int, *, project: str | None = None
    ) -> GraderVersion:
        """One version of a grader; versions never change.

        Raises:
            NotFoundError: There is none.
        """
        found = await self._scope.call(operations.show_grader, grader_key, number, project=project)
        return found.latest

    @by_hand
    async def update(
        self,
        grader_key: str,
        fn: Definition | Function,
        *,
        note: str = "",
        expected: int | None = None,
        samples: Sequence[Item] = (),
        project: str | None = None,
    ) -> GraderRecord:
        """Store a new version; what did not change makes none.

        Args:
            grader_key: The grader.
            fn: What it becomes: a function or its source, which keeps the isolation and range that
                the grader has, or a whole definition.
            note: Why.
            expected: The version this change was made to.
            samples: Real rows that it must be able to grade.
            project: The project; the client's by default.

        Raises:
            ConflictError: ``expected`` is not the newest version any more.
            LockedError: The grader is locked.
        """
        definition = _definition(fn)
        if isinstance(fn, str) or callable(fn):
            present = await self._scope.call(operations.show_grader, grader_key, project=project)
            definition = _with_settings(definition, present.latest)
        made = await self._scope.call(
            operations.update_grader,
            grader_key,
            definition.kind,
            definition.to_dict(),
            note=note,
            expected=expected,
            samples=items_of(samples, "samples"),
            project=project,
        )
        for warning in made.warnings if definition.kind != "custom" else ():
            warn_caller(f"grader {grader_key!r}: {warning}", level=2)
        return made.record

    @like(operations.delete_grader)
    async def delete(self, **given: object) -> bool:
        """Delete a grader; the versions that gave scores stay readable.

        With ``force`` also where a job that has not ended uses it.

        Returns:
            Whether there was one.

        Raises:
            LockedError: It is locked.
            ConflictError: It is used, and ``force`` was not given.
        """
        try:
            await self.ask(operations.delete_grader, given)
        except NotFoundError:
            return False
        return True

    @by_hand
    async def validate(
        self, fn: Definition | Function, *, samples: Sequence[Item] = (), project: str | None = None
    ) -> ValidationReport:
        """Check a grader and store nothing.

        Args:
            fn: A function, its source, or a definition.
            samples: Real rows to grade with it.
            project: The project; the client's by default.
        """
        definition = _definition(fn)
        return await self._scope.call(
            operations.validate_grader,
            definition.kind,
            definition.to_dict(),
            items_of(samples, "samples"),
            project=project,
        )

    @by_hand
    async def grade(
        self,
        grader_key: str,
        items: Sequence[Item],
        *,
        version: int | None = None,
        deadline: float | None = None,
        project: str | None = None,
    ) -> Grades:
        """Grade items with a stored grader.

        Args:
            grader_key: The grader.
            items: Any number of them; for very many there are datasets and jobs.
            version: The newest by default, whichever that is when the first of them is graded.
            deadline: Seconds that each item may take once its turn has come; one that is late is an
                error. No end by default.
            project: The project; the client's by default.

        Returns:
            One outcome for each item, in their order; its ``calibration`` is the grader's card.

        Raises:
            InputError: For an item that cannot be graded, named by its place, or two of one id.
        """
        parts = list(_parts(sized_items_of(items, "items")))
        if len(parts) > 1 and version is None:
            present = await self._scope.call(operations.show_grader, grader_key, project=project)
            version = present.latest.number
        graded = Grades()
        for part in parts:
            some = await self._scope.call(
                operations.grade, grader_key, part, version, deadline, project=project
            )
            _check_answer(some, part, grader_key if version is None else f"{grader_key}@{version}")
            graded += some.results
            graded.seconds += some.seconds
            graded.calibration = some.calibration
            graded.grader, graded.digest = some.grader, some.digest
        return graded

    @by_hand
    async def export(
        self, directory: str, *, keys: Sequence[str] = (), project: str | None = None
    ) -> Sequence[str]:
        """Write graders as files that can live in git; all of them by default.

        Returns:
            The names of the files.
        """
        from assay.registry.imports import write_folder

        found = await self._scope.call(
            operations.export_graders, ",".join(keys) or None, project=project
        )
        files = found.files
        for name in files:
            if Path(name).name != name:
                raise InputError(f"the server named a file {name!r:.80}, which is not a plain name")
        write_folder(files, directory)
        return sorted(files)

    @by_hand
    async def import_(
        self, directory: str, *, update: bool = True, project: str | None = None
    ) -> Sequence[GraderRecord]:
        """Store the graders that `export` wrote; all of them, or none.

        Args:
            directory: Where the files are.
            update: Whether a grader that is there gets a new version, instead of being refused.
            project: The project; the client's by default.
        """
        from assay.registry.imports import read_folder

        files, _ = read_folder(directory)
        found = await self._scope.call(
            operations.import_graders, files, update=update, project=project
        )
        return found.items


def _parts(
    rows: Iterable[tuple[Mapping[str, Json], int]],
) -> Iterator[Sequence[Mapping[str, Json]]]:
    """Rows in requests that a server takes."""
    part: list[Mapping[str, Json]] = []
    left = _MOST_BYTES
    for row, size in rows:
        if part and (len(part) == operations.MOST_ITEMS or size > left):
            yield part
            part, left = [], _MOST_BYTES
        part.append(row)
        left -= size
    if part:
        yield part


def _check_answer(some: GradedItems, asked: Sequence[Mapping[str, Json]], grader: str) -> None:
    """Refuse an answer to something else: a mixed-up reward is worse than none.

    Raises:
        ServerError: For outcomes of another grader, or of other items.
    """
    if len(some.results) != len(asked):
        raise ServerError(f"the server graded {len(some.results)} of {len(asked)} items")
    if some.grader and grader not in (some.grader, some.grader.partition("@")[0]):
        raise ServerError(f"the server graded with {some.grader!r:.100} instead of {grader!r}")
    for number, (one, row) in enumerate(zip(some.results, asked, strict=True)):
        name = row.get("id")
        if isinstance(name, str) and one.id != name:
            raise ServerError(f"outcome {number + 1} is of item {one.id!r:.100}, not {name!r:.100}")


def _with_settings(definition: Definition, present: GraderVersion) -> Definition:
    """A new function with the isolation and range of the version that it follows."""
    from assay.registry import definition_from

    if definition.kind != "function" or present.kind != "function":
        return definition
    return definition_from("function", {**present.definition, "source": definition.data["source"]})


def _definition(given: Definition | Function) -> Definition:
    if isinstance(given, str) or callable(given):
        return function_definition(given)
    return given
