"""Operations: what can be asked, said once, for the server's routes and both kinds of client.

An operation is a function. Its annotated parameters are its input, its return annotation is its
output, its docstring is what the OpenAPI document says of it. Where the database is at hand, the
function is a plain one that is given a `Desk`; one that has to wait for something else, such as a
grader, is a coroutine that is given a `Host`, which lends it a desk step by step.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from assay.frozen import frozen
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json, plain
from assay.store.catalog import GraderVersion
from assay.store.changes import ChangeRecord, Changes
from assay.store.database import Database
from assay.store.projects import KeyRole

if TYPE_CHECKING:
    from assay.graders.batch import Batch
    from assay.registry.grading import Items
    from assay.registry.registry import Registry
    from assay.store.records import CellKey
    from assay.store.regrades import RegradeState

P = ParamSpec("P")
T = TypeVar("T")

Entrance: TypeAlias = "KeyRole | Literal['anyone', 'member']"
"""Who may ask: a role; ``member`` for any valid key; ``anyone``."""

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

Row: TypeAlias = "Mapping[str, Json]"
"""A recorded answer, as `assay.tasks.rows` reads it."""

ROLES: tuple[KeyRole, ...] = ("viewer", "editor", "admin")
"""Each may what those before it may."""

EVERY_PROJECT = "*"
_NOTED = frozenset(
    {
        *("key", "id", "run", "name", "role", "project", "locked", "force", "grader", "dataset"),
        *("version", "before", "keep_files", "requests_per_minute", "gradings_at_once"),
        *("traces", "spans", "rewritten", "unfinished", "clear"),
        *("case", "harness", "model", "trial", "ruling"),
    }
)
"""Parameters that the log of changes tells: names and numbers, never content."""
MAX_LIMIT = 200
"""Most items of one page over HTTP."""

KEY_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
NO_NULL = r"^[^\x00]*$"
"""Pattern of a text that every database can keep."""


@frozen(kw_only=True)
class Spec:
    """What a parameter may be; stands in an ``Annotated``.

    Attributes:
        description: For people.
        example: A value of it.
        place: Where it travels: by default in the path if that names it, else in the body of a
            request that has one, else in the query. ``if-match`` is a version in that header,
            ``project`` the desk's project, which is chosen before the operation begins.
        alias: What the path or the query calls it.
        pattern: Of a text; the other limits are those of JSON Schema.
    """

    description: str = field(default="", kw_only=False)
    example: Json = None
    place: Literal["", "query", "if-match", "project"] = ""
    alias: str = ""
    pattern: str = ""
    min_length: int | None = None
    max_length: int | None = None
    ge: float | None = None
    le: float | None = None

    @classmethod
    def text(cls, most: int, description: str = "", **more: Any) -> Spec:  # noqa: ANN401 - of the above
        """Of a text of at most so many characters, which every database can keep."""
        return cls(description, pattern=NO_NULL, max_length=most, **more)


GraderKey: TypeAlias = Annotated[
    str, Spec("Key of the grader.", pattern=KEY_PATTERN, example="four")
]
ThatGrader: TypeAlias = Annotated[
    str, Spec("Key of the grader.", alias="key", pattern=KEY_PATTERN, example="four")
]
InProject: TypeAlias = Annotated[
    str | None, Spec("The project; the client's by default.", place="project")
]
"""For whoever asks: the function finds it at its desk."""
DatasetKey: TypeAlias = Annotated[
    str, Spec("Key of the dataset.", pattern=KEY_PATTERN, example="arithmetic")
]
Limit: TypeAlias = Annotated[int, Spec("Most items of the page.", ge=1, le=MAX_LIMIT, example=50)]
Offset: TypeAlias = Annotated[
    int, Spec("How many are left out before it.", ge=0, le=2**31 - 1, example=0)
]
After: TypeAlias = Annotated[
    str | None, Spec("Where the list goes on: `next` of the page before.", max_length=10_000)
]
Whole: TypeAlias = Annotated[
    bool, Spec("Each item with all that is stored of it, not only a line.")
]
Force: TypeAlias = Annotated[bool, Spec("Even if it is in use.")]
Name: TypeAlias = Annotated[str, Spec.text(200)]
Text: TypeAlias = Annotated[str, Spec.text(10_000)]


@frozen
class Identity:
    """Who asks.

    Attributes:
        id: Id of the key, or ``local`` for whoever used the one-time link or has the store itself.
        name: The key's name.
        role: What they may do.
        project: Where: a project's key, or ``*``.
    """

    id: str
    name: str
    role: KeyRole
    project: str

    def may(self, role: KeyRole, project: str | None) -> bool:
        """Whether they have a role in a project; None asks for something that is in no project."""
        covers = self.project in (EVERY_PROJECT, project)
        return covers and ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Identity("local", "local", "admin", EVERY_PROJECT)
"""Whoever uses this machine."""


@frozen
class Desk:
    """The database at hand, in its own thread, for whoever asks about a project.

    Attributes:
        database: The database.
        project: Key of the project; empty for what is in none.
        who: Who asks.
        permissions: What stored graders may do here.
        address: Where the request came from; empty where no server is asked.
    """

    database: Database
    project: str
    who: Identity
    permissions: Permissions
    address: str = ""

    @property
    def graders(self) -> Registry:
        """The graders of the project."""
        from assay.registry.registry import Registry

        return Registry(self.database, self.project, self.who.name)

    def note(
        self,
        operation: Operation[..., Any] | str,
        given: Mapping[str, object],
        output: object = None,
    ) -> ChangeRecord:
        """Note a change in the database, in the transaction that makes it if there is one.

        Args:
            operation: What is done; the name of what is in no table.
            given: Its parameters, of which those that are no content are noted.
            output: What came of it; noted by its id, if it has one.
        """
        if isinstance(operation, str):
            name = operation
        else:
            name, sent = operation.name, operation.sent(given)
            given = {one.sent_as: sent[one.name] for one in operation.places if one.name in sent}
        what = {key: plain(value) for key, value in given.items() if key in _NOTED}
        if isinstance(made := getattr(output, "id", None), str):
            what["id"] = made
        change = ChangeRecord(
            time=self.database.now(),
            operation=name,
            project=self.project or str(what.get("project", EVERY_PROJECT)),
            what=what,
            by=self.who.name,
            key=self.who.id,
            role=self.who.role,
            address=self.address,
        )
        with self.database.writing():
            Changes(self.database).add(change)
        return change


class Host:
    """Carries out operations that wait for something else than the database.

    This one does so in the thread that has the database; a server has one of its own.

    Attributes:
        desk: The database at hand.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @property
    def permissions(self) -> Permissions:
        """What stored graders may do here."""
        return self.desk.permissions

    async def run(self, work: Callable[[Desk], T]) -> T:
        """Do something at a desk."""
        return work(self.desk)

    async def finish(self, work: Callable[[Desk], T]) -> T:
        """Do the last thing at a desk: the reply is stored in the same transaction."""
        with self.desk.database.writing():
            return work(self.desk)

    async def read(self, work: Callable[[Desk], T]) -> T:
        """Read for seconds at a desk with a connection of its own, where it holds up nobody."""
        return work(self.desk)

    async def apart(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for something that may compute for seconds, where it holds up nobody."""
        return await work()

    async def grade(
        self, version: GraderVersion, items: Items, deadline: float | None = None
    ) -> Batch:
        """Grade items, likewise, each within so many seconds."""
        from assay.registry.grading import grade_timed

        return await grade_timed(version, items, self.permissions, deadline)

    async def regrade(self, run: str, cells: Sequence[CellKey] | None) -> RegradeState:
        """Grade cells of a run again, or all; on a server this only begins with it."""
        from assay.eval.regrading import regrade
        from assay.store.regrades import Regrades
        from assay.store.runs import Store

        with Regrades(self.desk.database).held(run):
            return await regrade(Store(self.desk.database), run, cells, by=self.desk.who.name)


@frozen
class Input:
    """One parameter of an operation.

    Attributes:
        name: Its name.
        annotation: Its type, without the spec.
        spec: What it may be.
        place: ``path``, ``query``, ``body`` or ``if-match``.
        default: Its default, or ``inspect.Parameter.empty``.
    """

    name: str
    annotation: Any
    spec: Spec
    place: str
    default: object

    @property
    def sent_as(self) -> str:
        """What the path, the query or the body calls it."""
        return self.spec.alias if self.spec.alias and self.place in ("path", "query") else self.name


@frozen
class Spread:
    """A parameter that travels as several; stands in an ``Annotated`` instead of a `Spec`.

    Attributes:
        parts: Name, type, spec and default of each.
        values: Their values, of what was given; not asked for None.
        description: For people.
    """

    parts: tuple[tuple[str, object, Spec, object], ...]
    values: Callable[[Any], tuple[object, ...]]
    description: str = ""


@dataclass(frozen=True, eq=False)
class Operation(Generic[P, T]):
    """Something that can be asked.

    Attributes:
        name: Its name, which is its function's.
        method: HTTP method.
        path: Below the server's address; ``{project}`` is the desk's.
        role: Who may ask.
        function: What carries it out.
        tag: Heading of the OpenAPI document.
        status: Of a reply that says it was done.
        faults: Statuses of refusals that do not follow from its method, path and role.
        repeatable: Whether a request with an idempotency key is carried out once.
        where: Project in which the role is needed, for a path that names none.
        lasts: Whether one that is not a ``GET`` changes what is stored.
        headers: What stands beside an output: ``Location``, ``ETag``.
        apart: Whether a ``GET`` may read for seconds, so that a server has it read on a connection
            of its own, where that holds up nobody.
    """

    name: str
    method: Method
    path: str
    role: Entrance
    function: Callable[..., Any]
    tag: str = ""
    status: int = 200
    faults: tuple[int, ...] = ()
    repeatable: bool = False
    where: str = ""
    lasts: bool = True
    headers: Callable[[Desk, Any], Mapping[str, str]] | None = None
    apart: bool = False

    @property
    def is_change(self) -> bool:
        """Whether the log of changes tells of it."""
        return self.lasts and self.method != "GET"

    @cached_property
    def waits(self) -> bool:
        """Whether it is given a `Host`."""
        return inspect.iscoroutinefunction(self.function)

    @cached_property
    def in_project(self) -> bool:
        """Whether it is asked of a project."""
        return "{project}" in self.path

    @cached_property
    def signature(self) -> inspect.Signature:
        """What whoever asks gives it."""
        whole = inspect.signature(self.function)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def inputs(self, **types: object) -> list[Input]:
        """What of it travels: its parameters but for the project.

        Args:
            **types: What to understand by names in annotations, such as ``Json``.
        """
        found: list[Input] = []
        for name, kind, spec, default in self._parameters(types):
            parts = spec.parts if isinstance(spec, Spread) else ((name, kind, spec, default),)
            found += [Input(*one[:3], self._place(one[0], one[2]), one[3]) for one in parts]
        return [one for one in found if one.place != "project"]

    def _parameters(
        self, types: Mapping[str, object]
    ) -> Iterator[tuple[str, object, Spec | Spread, object]]:
        known = {"Json": object, **types}
        hints = typing.get_type_hints(self.function, localns=known, include_extras=True)
        for one in self.signature.parameters.values():
            kind, *more = (
                typing.get_args(hints[one.name])
                if typing.get_origin(hints[one.name]) is Annotated
                else (hints[one.name],)
            )
            spec = next((part for part in more if isinstance(part, Spec | Spread)), Spec())
            yield one.name, kind, spec, one.default

    def _place(self, name: str, spec: Spec) -> str:
        if spec.place:
            return spec.place
        if f"{{{spec.alias or name}}}" in self.path:
            return "path"
        return "body" if self.method in ("POST", "PUT", "PATCH") else "query"

    @cached_property
    def _spread(self) -> Mapping[str, Spread]:
        return {n: spec for n, _, spec, _ in self._parameters({}) if isinstance(spec, Spread)}

    def sent(self, given: Mapping[str, object]) -> dict[str, object]:
        """What was given, as it travels."""
        values = {name: value for name, value in given.items() if name not in self._spread}
        for name, spread in self._spread.items():
            if (whole := given.get(name)) is not None:
                values |= zip((part[0] for part in spread.parts), spread.values(whole), strict=True)
        return values

    def received(self, values: Mapping[str, object]) -> dict[str, object]:
        """What travelled, as the function takes it."""
        given = dict(values)
        for name, spread in self._spread.items():
            parts = tuple(given.pop(part[0], part[3]) for part in spread.parts)
            given[name] = None if parts[0] is None else parts
        return given

    @cached_property
    def about(self) -> str:
        """What it does, and what each parameter is, for whoever asks."""
        return self.about_as(inspect.getdoc(self.function) or "")

    def about_as(self, doc: str) -> str:
        """What something does that is asked in the same way, and what each parameter is."""
        said = [
            f"    {name}: {spec.description}"
            for name, _, spec, _ in self._parameters({})
            if spec.description
        ]
        told, *ends = re.split(r"\n\n(?=Returns:|Raises:)", doc, maxsplit=1)
        return "\n\n".join([told, "\n".join(["Args:", *said]), *ends]) if said else doc

    @cached_property
    def places(self) -> tuple[Input, ...]:
        """Its parameters, for whoever only asks where each travels."""
        return tuple(self.inputs())

    @cached_property
    def output(self) -> object:
        """The type of what it returns."""
        return typing.get_type_hints(self.function, localns={"Json": object})["return"]


class OperationOptions(TypedDict, total=False):
    """What more an operation may be; see `Operation`."""

    role: Entrance
    tag: str
    status: int
    faults: tuple[int, ...]
    repeatable: bool
    lasts: bool
    headers: Callable[[Desk, Any], Mapping[str, str]]
    apart: bool


OPERATIONS: list[Operation[..., Any]] = []
"""The table: every operation, in the order in which routes are looked through."""


class Decorator(Protocol):
    """Puts a function into the table, which is given a desk, or as a coroutine a host."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Host, P], Coroutine[Any, Any, T]], /
    ) -> Operation[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Desk, P], T], /) -> Operation[P, T]: ...


@frozen
class Section:
    """A section of the table: what the operations on one thing have in common.

    Attributes:
        path: What their paths begin with, below ``/api/v1``.
        tag: Heading of the OpenAPI document.
        where: Project in which the role is needed, for paths that name none.
    """

    path: str
    tag: str
    where: str = ""

    def __call__(
        self, method: Method, path: str = "", **more: Unpack[OperationOptions]
    ) -> Decorator:
        """Put a function into the table; see `Operation`.

        Args:
            method: HTTP method.
            path: Below the section's.
            **more: What is not as usual: a viewer may ask for a ``GET``, an editor for the others,
                and ``DELETE`` without an output is a 204.
        """

        def decorate(function: Callable[..., Any]) -> Operation[..., Any]:
            given: dict[str, Any] = {
                "role": "viewer" if method == "GET" else "editor",
                "tag": self.tag,
                "status": 204 if function.__annotations__["return"] in (None, "None") else 200,
                "where": self.where,
                **more,
            }
            made: Operation[..., Any] = Operation(
                function.__name__, method, f"/api/v1{self.path}{path}", function=function, **given
            )
            OPERATIONS.append(made)
            return made

        return cast("Decorator", decorate)
