"""What several commands share."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from assay.cores import cores
from assay.errors import InputError
from assay.frozen import frozen

if TYPE_CHECKING:
    from datetime import datetime

    from assay.eval.cluster.joining import Cluster
    from assay.graders.spec import GraderSpec


BAD_INPUT = 2
NOT_GRADED = 3
INTERRUPTED = 130

RUN = "a run's id, a prefix of it, its name, or latest"
"""What names a stored run."""
EXITS = """\
exit status: 0 all passed, 1 some cell did not pass, 2 bad input,
3 something could not be graded, 130 interrupted"""

_WAITING = 64


@frozen(kw_only=True)
class Outputs:
    """Where results go besides the terminal, and what passes.

    Attributes:
        json: One JSON object on standard output, and nothing else there.
        junit: File for JUnit XML.
        html: File for the HTML report.
        fail_under: Mean reward that passes; None asks every graded cell to pass.
        strict: Whether a skipped grader leaves the run without a verdict.
        by: A field of the metadata that the cells are broken down by; empty for none.
    """

    json: bool = False
    junit: str | None = None
    html: str | None = None
    fail_under: float | None = None
    strict: bool = False
    by: str = ""

    @classmethod
    def of(cls, given: Namespace) -> Outputs:
        """What `add_outputs` was given."""
        return cls(
            json=given.json,
            junit=given.junit,
            html=getattr(given, "html", None),
            fail_under=given.fail_under,
            strict=given.strict,
            by=given.by or "",
        )


def explain(parser: ArgumentParser, more: str = "", examples: str = "") -> None:
    """Say below a command's summary what else there is to know, and give examples."""
    parser.description = f"{parser.description}{more}"
    parser.epilog = f"examples:\n{examples}" if examples else None


class AddAction(Protocol):
    """Adds one action of a command: its name, what it does, more of that, and examples."""

    def __call__(
        self, name: str, summary: str, more: str = "", examples: str = ""
    ) -> ArgumentParser:
        """The parser of the action."""
        ...


def actions(parser: ArgumentParser, common: Callable[[ArgumentParser], None]) -> AddAction:
    """What adds actions to a command; each has the options that `common` adds, too."""
    forms = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")

    def action(name: str, summary: str, more: str = "", examples: str = "") -> ArgumentParser:
        added = forms.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n{more}",
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        common(added)
        return added

    return action


_HOURS = {"h": 1, "d": 24, "w": 168}


def moment(text: str) -> datetime:
    """A time that an option names: a date, or how long ago it was; argparse's ``type``.

    Raises:
        ArgumentTypeError: If it names none.
    """
    from datetime import UTC, datetime, timedelta

    if span := re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text):
        return datetime.now(UTC) - timedelta(hours=int(span[1]) * _HOURS[span[2]])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is neither a date such as 2026-11-21 nor a time such as 12h, 7d or 4w"
        raise ArgumentTypeError(message) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def add_yes(parser: ArgumentParser) -> None:
    """Add what answers the question of `require_yes`."""
    parser.add_argument("--yes", action="store_true", help="do not ask")


def require_yes(question: str, *, yes: bool) -> None:
    """Ask before something is gone for good; where nobody can answer, only ``--yes`` will do.

    Raises:
        InputError: If the answer is not yes.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{question} Nobody can be asked here", hint="--yes says so")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("nothing was deleted")


def check_targets(targets: Iterable[str | None], *, inputs: Iterable[str]) -> None:
    """Refuse files to write that would destroy an input or cannot be written, before any work."""
    read = [os.path.realpath(path) for path in inputs]
    written: set[str] = set()
    for target in targets:
        if target is None:
            continue
        real = os.path.realpath(target)
        if real in read:
            raise InputError(f"{target!r} is an input and would be overwritten")
        if real in written:
            raise InputError(f"{target!r} would be written twice")
        written.add(real)
        try:
            _require_writable(target, real)
        except PermissionError as error:  # of a directory that nobody may look into
            raise InputError(f"cannot write {target!r}: {error.strerror}") from error


def _require_writable(target: str, real: str) -> None:
    if Path(real).is_dir():
        raise InputError(f"cannot write {target!r}: it is a directory")
    folder = Path(real).parent
    if not folder.is_dir():
        raise InputError(f"cannot write {target!r}: there is no directory {str(folder)!r}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {target!r}: {str(folder)!r} is not writable")
    _require_room(target, folder)


def _require_room(target: str, folder: Path) -> None:
    """Refuse a directory where no file can be made, whatever its permissions say: as in /proc."""
    from tempfile import TemporaryFile

    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write {target!r}: {error.strerror}") from error


@contextmanager
def read_or_not() -> Generator[None]:
    """Within it, standard output is written; whoever stopped reading still gets the exit status."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # a page leaves by SystemExit
        let_go_of_output()


def let_go_of_output() -> None:
    """What is left in its buffer has nowhere to go, and must not fail again at exit."""
    with suppress(OSError):
        sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def write_lines(lines: Iterable[str], out: str | None) -> int:
    """Write lines to a file, there whole or not at all, else to standard output; how many."""
    from assay.reports.files import replacing

    number = 0
    with nullcontext(sys.stdout) if out is None else replacing(out) as file:
        for line in lines:
            file.write(f"{line}\n")
            number += 1
    return number


_PLACES: list[str] = []
"""The store that the options of the command name, for all its threads."""


@contextmanager
def store_named(place: str | None) -> Generator[None]:
    """Within it, the store is at a place, if one is named; see `store_place`."""
    if place is None:
        yield
        return
    _PLACES.append(place)
    try:
        yield
    finally:
        _PLACES.pop()


def store_place() -> str:
    """Where the store is: ``--db``, ``ASSAY_DB``, or ``.assay`` in the working directory.

    Raises:
        InputError: If only the variable that was its name before is set.
    """
    if "ASSAY_HOME" in os.environ and "ASSAY_DB" not in os.environ:
        raise InputError("ASSAY_HOME is called ASSAY_DB now", hint="set that instead")
    return _PLACES[-1] if _PLACES else os.environ.get("ASSAY_DB") or str(Path.cwd() / ".assay")


def state_home() -> str:
    """The directory of what is kept as files: the store's, or ``.assay`` beside a database."""
    place = store_place()
    return str(Path.cwd() / ".assay") if "://" in place else place


def cache_home() -> str:
    """Where all runs of a store share their sources and environments."""
    return str(Path(state_home(), "cache"))


def store_made() -> str:
    """Where the store is that is to be written; a new one that was named is told of."""
    place = store_place()
    if _PLACES and "://" not in place and not Path(place, "assay.db").exists():
        print(f"note: there was no store at {place}: it is made now", file=sys.stderr)
    return place


def named_store() -> str:
    """What a command needs to find the store again that ``--db`` names; nothing of a server's."""
    return f" --db {shlex.quote(_PLACES[-1])}" if _PLACES and not is_shared() else ""


def store_there() -> str:
    """Where the store is that is to be read.

    Raises:
        InputError: If there is none: a name that was mistyped makes nothing.
    """
    place = store_place()
    folder = Path(place)
    with suppress(OSError):  # opening it says what is wrong
        if "://" not in place and (
            not folder.exists() or (folder.is_dir() and not (folder / "assay.db").exists())
        ):
            raise InputError(
                f"there is no store at {place}",
                hint="`assay run`, `assay grade`, `assay serve` and `assay graders create` make "
                "one; --db or ASSAY_DB names another",
            )
    return place


def is_shared() -> bool:
    """Whether others may store graders there, too: in a server's database, not a directory."""
    return "://" in store_place()


def file_and_name(text: str) -> tuple[str, str]:
    """The file of ``FILE.py:NAME``, and the name in it; of anything else the whole, and no name."""
    file, _, name = text.rpartition(":")
    return (file, name) if file.endswith(".py") else (text, "")


def key_and_number(text: str) -> tuple[str, int | None]:
    """The key and the version of ``KEY`` or ``KEY@N``."""
    key, at, number = text.partition("@")
    if not at:
        return key, None
    if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number)):
        raise InputError(
            f"{number!r:.80} is not a version number of {key!r:.80}", hint="such as exact@2"
        )
    return key, int(number)


def is_trusted(given: Namespace) -> bool:
    """Whether stored graders may do what their authors say.

    Then classes that they name are imported, and endpoints on private networks and models at
    addresses that they name are called. In a store of one's own they may; where others store
    graders, too, only with ``--trust-authors``.
    """
    return given.trust_authors or not is_shared()


def add_trust_authors(parser: ArgumentParser) -> None:
    """Add the option of commands that grade with stored graders."""
    parser.add_argument(
        "--trust-authors",
        action="store_true",
        help="with a shared --db: import the classes that stored graders name, and call models and "
        "endpoints at the addresses that they name",
    )


def add_db(parser: ArgumentParser, project: str = "") -> None:
    """Add where the store is; and ``--project``, where `project` says what it is there for."""
    add = parser.add_argument
    where = "the store: a directory, or postgresql://USER@HOST/NAME; $ASSAY_DB, else .assay"
    add("--db", metavar="WHERE", help=where)
    if project:
        add("--project", default="default", metavar="KEY", help=project)


def add_set(parser: ArgumentParser, what: str) -> None:
    """Add what gives fields of a record; see `assay.cli.fields`."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help=f"{what}: JSON, else text; @FILE is what is in a file; null removes",
    )


def is_parts(name: str) -> bool:
    """Whether a run's name is a directory that ``assay grade --out DIR/`` wrote."""
    if not Path(name).is_dir():
        return False
    from assay.eval.rows.part_writing import MANIFEST

    return Path(name, MANIFEST).is_file()


def add_workers(parser: ArgumentParser) -> None:
    """Add how much is done at once."""
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="how many at once; as many as cores by default",
    )


def add_engine(parser: ArgumentParser, what: str = "where to work") -> None:
    """Add where the work is done; see `engine_given`."""
    parser.add_argument(
        "--engine",
        type=engine,
        default="local",
        metavar="ENGINE",
        help=f"{what}: local (the default), ray, or ray://HOST:PORT (docs/datasets.md)",
    )


def engine(text: str) -> str:
    """The name of an engine; argparse's ``type``.

    Raises:
        ArgumentTypeError: If it names none.
    """
    if text == "local":
        return text
    from assay.eval.cluster.joining import engine_address

    try:
        engine_address(text)
    except InputError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


@contextmanager
def engine_given(given: Namespace) -> Generator[Cluster | None]:
    """The cluster that `add_engine` was given, connected until the block ends; None for here.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: There is no such cluster.
    """
    if given.engine == "local":
        yield None
        return
    from assay.eval.cluster.joining import connected

    if sys.stderr.isatty():
        print(f"connecting to {given.engine}, which takes some seconds", file=sys.stderr)
    with connected(given.engine) as cluster:
        yield cluster


BY = "also by this field of the rows, or of the cases' metadata: topic, tags"


def add_outputs(parser: ArgumentParser) -> None:
    """Add where results go; see `Outputs`."""
    add_json(parser)
    add = parser.add_argument
    add("--junit", metavar="FILE", help="also write a JUnit XML report")
    add("--fail-under", type=share, metavar="X", help="pass if the mean reward is at least X")
    add("--strict", action="store_true", help="exit 3 where a grader was skipped")
    add("--by", type=field, metavar="FIELD", help=BY)


def add_json(parser: ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def positive(text: str) -> int:
    """A whole number from 1 up."""
    return _decimal(text, 1)


def whole(text: str) -> int:
    """A whole number from 0 up; see `positive`."""
    return _decimal(text, 0)


def _decimal(text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) < least:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return int(text)


def port(text: str) -> int:
    """The number of a port; 0 for any."""
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def field(text: str) -> str:
    """The name of a field, which a shell's variable that is not set would leave empty."""
    if not text.strip():
        raise ArgumentTypeError(f"{text!r} names no field")
    return text


def share(text: str) -> float:
    """A number from 0 to 1."""
    return number_between(0.0, 1.0, "a number from 0 to 1")(text)


def number_between(low: float, high: float, what: str) -> Callable[[str], float]:
    """What takes a number from `low` to `high`, and refuses all else as not being `what`."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return number


def worker_count(workers: int | None, graders: Iterable[GraderSpec] = ()) -> int:
    """How many cells to work on at once: as many as cores, or many where graders only wait."""
    if workers is None and any(spec.kind.grader and spec.kind.grader.waits for spec in graders):
        return _WAITING
    return workers or cores()


def user_name(otherwise: str) -> str:
    """Who is at work here, where nobody says."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return otherwise


def file_warnings(specs: Sequence[GraderSpec]) -> tuple[str, ...]:
    """What is worth a look in a file; the registry is loaded only where there is a judge."""
    weighty = tuple(
        f"gate {spec.label!r}: its weight of {spec.weight:g} adds no credit, as it is a gate"
        for spec in specs
        if spec.gate and spec.weight != 1.0
    )
    lax = tuple(
        f"grader {spec.label!r}: {said}"
        for spec in specs
        if not spec.open  # what it asks for comes with the rows
        for said in spec.kind.grader.pays_for_nothing(spec.options)
    )
    if not any(spec.type == "binary_judge" or "fake" in str(spec.options) for spec in specs):
        return (*weighty, *lax)
    from assay.registry.validation import judge_warnings

    return (*weighty, *lax, *dict.fromkeys(judge_warnings(specs)))


def tell_warnings(where: str, warnings: Iterable[str]) -> None:
    """Write what is worth a look in a file or a stored grader to standard error."""
    from assay.reports.plain import one_line

    for warning in warnings:
        print(f"warning: {where}: {one_line(warning, 1_000)}", file=sys.stderr)
