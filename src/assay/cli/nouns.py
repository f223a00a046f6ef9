"""Commands on what is stored: each asks for an operation of `assay.service`, and shows its reply.

What a command takes follows from the operation's parameters, and ``--json`` is its reply. Only what
the table of operations cannot know is said of a command: see `Verb` and `assay.cli.stored`.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import sys
import typing
from argparse import (
    SUPPRESS,
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
)
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from assay.cli.options import (
    AddAction,
    actions,
    add_db,
    add_json,
    add_yes,
    check_targets,
    explain,
    is_shared,
    moment,
    positive,
    require_yes,
    state_home,
    whole,
)
from assay.errors import InputError, LockedError, NotFoundError
from assay.frozen import frozen
from assay.reports.figures import count
from assay.reports.page import Page, page_on
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.service.arguments import check
from assay.service.here import ask, do, local_desk
from assay.service.operation import MAX_LIMIT, Input, Operation, as_json
from assay.store.database import Database
from assay.store.database import moment as written

Item: TypeAlias = "Mapping[str, Any]"
Column: TypeAlias = "str | Callable[[Item], str]"
"""The field of an item that a column shows, with points to those within; or what it says of one."""

Reply: TypeAlias = Any
"""What an operation returns; which one it is stands in a table, where no type checker sees it."""

_BEFORE = "before"
"""The parameter that is a time, which people may also give as how long ago it was."""
_SAID = {"name": "for people"}
"""What parameters are of which their operation says nothing."""


@frozen
class Verb:
    """A command that asks for an operation.

    Attributes:
        asks: The operation's name.
        columns: Of a list: fields, each perhaps behind a heading of its own and ``=``.
        about: What it does, where that is not what the operation says of itself.
        says: Shows the reply; by default its fields.
        lines: What an export writes, a line of JSON for each.
        part: The field of each item that an export writes; the whole item by default.
        first: Of a deletion: the operation that shows what goes, asked for all before any goes.
        question: What is asked before a deletion, behind the names; nothing by default.
        instead: An option, and the operation that is asked where the option is given.
        keeps: The operation that shows what stays as it is where no option speaks of it.
        names: What options are called that are not called as their parameter.
        defaults: Of parameters that must be given over HTTP.
        numbered: The parameter that the N of ``KEY@N`` stands for.
        since: The field that ``--since`` looks at, of a list that has the newest first.
        only: The word for how an item stands, for ``--status``, with all such words.
    """

    asks: str
    columns: str = ""
    about: str = ""
    says: Callable[[Page, Any, Namespace], None] | None = None
    lines: str = ""
    part: str = ""
    first: str = ""
    question: str = ""
    instead: tuple[str, str] = ("", "")
    keeps: str = ""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    numbered: str = ""
    since: str = ""
    only: tuple[Callable[[Item], str], tuple[str, ...]] | None = None


@frozen(kw_only=True)
class Noun:
    """What the commands on one sort of stored things have in common.

    Attributes:
        file: The file of its operations, below `assay.service`.
        more: What else there is to know.
        examples: For the help.
        verbs: Its commands; a noun that has only ``list`` is a command itself.
        store: Where they are: in a ``project``, in the database of a ``server``, or in the ``home``
            of this user's runs.
        exits: What the exit statuses of its commands mean.
        empty: What is said where there are none; by default that the project has none.
    """

    file: str
    more: str
    examples: str
    verbs: Mapping[str, Verb]
    store: Literal["project", "server", "home"] = "project"
    exits: str = "0 done, 2 bad input, 3 the store could not be used"
    empty: str = ""


def operation_of(noun: str, name: str) -> Operation[..., Any]:
    """An operation on a noun."""
    return getattr(import_module(f"assay.service.{_noun(noun).file}"), name)


def is_verb(given: Namespace) -> bool:
    """Whether an action of a command is one of those of its noun."""
    return given.action in _noun(given.command).verbs


def _noun(noun: str) -> Noun:
    from assay.cli.stored import NOUNS

    return NOUNS[noun]


def _verb(given: Namespace) -> Verb:
    return _noun(given.command).verbs[given.action]


# What commands take


def add(parser: ArgumentParser) -> None:
    """Add the commands below a noun, or what the only one takes."""
    noun = parser.prog.removeprefix("assay ")
    found = _noun(noun)
    if set(found.verbs) != {"list"}:
        add_verbs(parser, noun)
        return
    explain(parser, _more(found), found.examples)
    parser.set_defaults(action="list")
    _add_common(found, parser)
    _add_inputs(parser, noun, found.verbs["list"])


def add_verbs(parser: ArgumentParser, noun: str) -> AddAction:
    """Add the commands below a noun; what adds others, which are written by hand."""
    found = _noun(noun)
    explain(parser, _more(found), found.examples)
    action = actions(parser, lambda added: _add_common(found, added))
    for name, verb in found.verbs.items():
        about = verb.about or inspect.getdoc(operation_of(noun, verb.asks).function) or ""
        first, _, more = about.partition("\n")
        examples = [line for line in found.examples.splitlines() if _action_of(line) == name]
        summary = first[:1].lower() + first[1:].rstrip(".")
        _add_inputs(action(name, summary, more.strip(), "\n".join(examples)), noun, verb)
    return action


def _action_of(example: str) -> str:
    word = "".join(example.split()[2:3])
    return "list" if not word or word.startswith("-") else word


def _more(noun: Noun) -> str:
    return f"{noun.more}\n\nexit status: {noun.exits}"


def _add_common(noun: Noun, parser: ArgumentParser) -> None:
    if noun.store == "project":
        add_db(parser, "the project; `default` by default")
    elif noun.store == "server":
        where = "a directory, or postgresql://USER@HOST/NAME; $ASSAY_DB or .assay by default"
        parser.add_argument("--db", metavar="WHERE", help=where)
    add_json(parser)


def _add_inputs(parser: ArgumentParser, noun: str, verb: Verb) -> None:
    """Add what the operation takes, and what only the command line knows."""
    add = parser.add_argument
    option, other = verb.instead
    if verb.keeps:
        add("project", metavar="KEY", help="the project")
    inputs = {one.name: one for one in operation_of(noun, verb.asks).places}
    more = {one.name: one for one in operation_of(noun, other).places} if other else {}
    for one in {**more, **inputs}.values():
        if one.place == "path" and verb.first:  # by any name by which it can be shown
            shown = operation_of(noun, verb.first).places[0]
            how = "*" if other else "+"
            add(one.name, nargs=how, metavar=shown.sent_as.upper(), help=_help(shown))
        elif one.place == "path":
            at = "[@N]" if verb.numbered else ""
            add(one.name, metavar=one.sent_as.upper() + at, help=_help(one))
        elif not (verb.lines and one.name in ("limit", "cursor")):
            _add_input(parser, verb, one)
    if option == "project":
        add("--project", default="", metavar="KEY", help="only of this project")
    if verb.since:
        when = "only newer ones: 2026-11-21, 12h, 7d, 4w"
        add("--since", type=moment, metavar="WHEN", help=when)
    if verb.only:
        add("--status", choices=verb.only[1], help="only those that ended so")
    if verb.lines:
        add("--into", metavar="FILE", help="standard output by default")
    if verb.question:
        add_yes(parser)


def _add_input(parser: ArgumentParser, verb: Verb, one: Input) -> None:
    default = verb.defaults.get(one.name, one.default)
    if default is Parameter.empty and one.name != _BEFORE:
        parser.add_argument(one.name, metavar=one.name.upper(), help=_help(one))
        return
    called = verb.names.get(one.name, one.spec.alias or one.name).replace("_", "-")
    kinds = typing.get_args(one.annotation) or (one.annotation,)
    words = [word for kind in kinds for word in (typing.get_args(kind) or (kind,))]
    more: dict[str, Any] = {"default": default, "help": _help(one, default)}
    if one.name == _BEFORE:
        when = "only older ones: 2026-11-21, 12h, 7d, 4w"
        more = {"type": moment, "required": not verb.instead[1], "metavar": "WHEN", "help": when}
    elif one.name == "days":
        more |= {"type": _days, "metavar": "WHEN", "help": "in 90d, 4w; never by default"}
    elif verb.keeps:
        said = "a number, or none; as it is by default"
        more = {"type": _limit, "default": SUPPRESS, "metavar": "N", "help": said}
    elif bool in kinds and default is True and called != one.name:
        more = {"action": "store_false", "help": f"{called} it"}
    elif bool in kinds:
        more["action"] = BooleanOptionalAction if default is True else "store_true"
    elif all(isinstance(word, str) for word in words if word is not type(None)):
        more["choices"] = [word for word in words if isinstance(word, str)]
    elif int in kinds:
        kind = whole if one.spec.ge == 0 else positive
        more |= {"type": kind, "metavar": "N"}
    else:
        more["metavar"] = "TEXT"
    parser.add_argument(f"--{called}", dest=one.name, **more)


def _limit(text: str) -> int | None:
    return None if text == "none" else positive(text)


def _days(text: str) -> int:
    """How many days a span has."""
    span = re.fullmatch(r"([1-9][0-9]{0,3})([dw])", text)
    if not span:
        raise ArgumentTypeError(f"{text!r} is no time such as 90d or 4w")
    return int(span[1]) * {"d": 1, "w": 7}[span[2]]


def _help(one: Input, default: object = None) -> str:
    said = one.spec.description.rstrip(".") or _SAID.get(one.name, "")
    parts = [said[:1].lower() + said[1:]] if said else []
    parts += [f"{default} by default"] if default and not isinstance(default, bool | type) else []
    return "; ".join(parts).replace("%", "%%")


# What commands do


def run(given: Namespace) -> int:
    """Run one of the commands on what is stored."""
    verb = _verb(given)
    with store_of(given, make=given.action == "create") as database:
        if verb.columns:
            return _list(given, database)
        if verb.lines:
            return _export(given, database)
        if operation_of(given.command, verb.asks).method == "DELETE":
            return _delete(given, database)
        return _show(given, database)


@contextmanager
def store_of(given: Namespace, *, make: bool = False) -> Generator[Database]:
    """The store that options name; what it says of what is missing, or locked, says where.

    Args:
        given: The options.
        make: Whether to make it if it is not there.
    """
    place = place_of(given)
    if not make and "db" in given and _is_nothing(place):
        raise InputError(
            f"there is no store at {place}",
            hint="`assay run`, `assay grade`, `assay serve` and `assay graders create` make one; "
            "--db or ASSAY_HOME names another",
        )
    with Database.open(place) as database:
        try:
            yield database
        except NotFoundError as error:
            message = f"{error.message}, in the store {database.place}"
            raise NotFoundError(message, location=error.location, hint=error.hint) from error
        except LockedError as error:
            raise LockedError(error.message, hint=f"first: {_unlock(given)}") from error


def place_of(given: Namespace) -> str:
    """Where the store is that options name: that of a server also where ASSAY_DB says."""
    of_server = _noun(given.command).store == "server"
    named = getattr(given, "db", "") or (of_server and os.environ.get("ASSAY_DB"))
    return named or state_home()


def _is_nothing(place: str) -> bool:
    """Whether a place is a directory without a store in it, or not there at all."""
    folder = Path(place)
    try:
        return "://" not in place and (
            not folder.exists() or (folder.is_dir() and not (folder / "assay.db").exists())
        )
    except OSError:
        return False  # opening it says what is wrong


def _unlock(given: Namespace) -> str:
    key = getattr(given, "key", getattr(given, "grader_key", "KEY"))
    words = ["assay", "graders", "lock", key, "--unlock"]
    if given.project != "default":
        words += ["--project", given.project]
    if given.db and not is_shared(given):
        words += ["--db", given.db]
    return shlex.join(words)


def _asker(given: Namespace, database: Database, name: str = "") -> Callable[..., Reply]:
    """What asks for a command's operation, or for another one of its noun.

    It gives the operation what options say, but for what it is told itself.
    """
    found = operation_of(given.command, name or _verb(given).asks)
    options = vars(given)

    def asked(**told: object) -> Reply:
        said = {one.name: options[one.name] for one in found.places if one.name in options}
        check(found, said := {**said, **told})
        desk = local_desk(database, given.project if found.in_project else "")
        if not found.waits:
            return do(found, desk, **said)
        import asyncio  # a third of what a list takes to start

        return asyncio.run(ask(found, desk, **said))

    return asked


def _show(given: Namespace, database: Database) -> int:
    verb = _verb(given)
    if verb.numbered:
        _read_number(given, verb.numbered)
    if verb.keeps:
        now = cast("dict[str, Json]", as_json(_asker(given, database, verb.keeps)()))
        vars(given).update({**now, **vars(given)})
    output = _asker(given, database)()
    if given.json:
        print(json.dumps(as_json(output)))
        return 0
    page = page_on(sys.stdout)
    if verb.says:
        verb.says(page, output, given)
    else:
        say_fields(page, as_json(output))
    return 0


def _read_number(given: Namespace, parameter: str) -> None:
    key, number = key_and_number(given.grader_key)
    said = getattr(given, parameter)
    if None not in (number, said) and number != said:
        raise InputError(f"{given.grader_key!r} and {said} are two versions", hint="keep one")
    vars(given).update({"grader_key": key, parameter: number or said})


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


def _list(given: Namespace, database: Database) -> int:
    """Show a list, page after page; options that no operation knows choose among what it has."""
    verb = _verb(given)
    option, other = verb.instead
    asked = _asker(given, database, other if other and getattr(given, option) else "")
    found: list[Item] = []
    is_chosen = bool(verb.only and given.status)
    place: Mapping[str, object] = {}
    while True:
        most = MAX_LIMIT if is_chosen else min(given.limit - len(found), MAX_LIMIT)
        reply = cast("dict[str, Any]", as_json(asked(limit=most, **place)))
        items = cast("list[Item]", reply["items"])
        new = [one for one in items if not (verb.since and given.since) or _is_new(one, given)]
        found += [one for one in new if not (verb.only and is_chosen) or _is_like(one, given)]
        place = _following(given, reply, place) if len(new) == len(items) else {}
        if not place or len(found) >= given.limit:
            break
    is_more = bool(place) or len(found) > given.limit
    reply["items"] = found = found[: given.limit]
    if "next_cursor" in reply:
        reply["next_cursor"] = place.get("cursor")
    if given.json:
        print(json.dumps(reply))
        return 0
    page = page_on(sys.stdout)
    if not found:
        page.line(_nothing(given))
        return 0
    columns = _columns(verb)
    rows = [[_cell(item, column) for column in columns.values()] for item in found]
    page.table(list(columns), rows, left=len(columns), whole=1)
    if is_more:
        ((name, value),) = {"limit": 2 * given.limit}.items() if is_chosen else place.items()
        page.line((f"more: --{name} {value}", "dim"))
    return 0


def _is_new(item: Item, given: Namespace) -> bool:
    return moment(item[_verb(given).since]) >= given.since


def _is_like(item: Item, given: Namespace) -> bool:
    only = _verb(given).only
    return only is None or only[0](item) == given.status


def _following(
    given: Namespace, reply: Mapping[str, Any], place: Mapping[str, object]
) -> dict[str, object]:
    """Where a list goes on; nothing after its last page."""
    if "offset" in given:
        after = cast("int", place.get("offset", given.offset)) + len(reply["items"])
        return {"offset": after} if reply["items"] and after < reply["total"] else {}
    return {"cursor": reply["next_cursor"]} if reply["next_cursor"] else {}


def _nothing(given: Namespace) -> str:
    """What is said of an empty list, unless options chose nothing from it."""
    ways = {"command", "action", "db", "project", "json", "limit", "offset", "cursor"}
    if any(value for name, value in vars(given).items() if name not in ways):
        return f"no {given.command} like that"
    where = f"no {given.command} in project {one_line(getattr(given, 'project', ''), 100)!r}"
    return _noun(given.command).empty or where


def _columns(verb: Verb) -> dict[str, Column]:
    from assay.cli.stored import COLUMNS

    named = {
        head: name or head for head, _, name in (c.partition("=") for c in verb.columns.split())
    }
    return {head.replace("_", " "): COLUMNS.get(name, name) for head, name in named.items()}


def _cell(item: Item, column: Column) -> str:
    if not isinstance(column, str):
        return one_line(column(item), 100)
    value: Any = item
    for name in column.split("."):
        value = value[name]
    return _shown(column, value, 60)


def _shown(name: str, value: object, width: int) -> str:
    """A value for people: a time to the minute, a digest by its beginning."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = "" if value is None else str(value)
    if name.endswith(("_at", "time")):
        return to_minute(text)
    return one_line(text[:16] if name.endswith("digest") else text, width)


def to_minute(time: str) -> str:
    """A time as people read it."""
    return time[:16].replace("T", " ")


def say_fields(page: Page, fields: Reply) -> None:
    """Show fields, a line for each, but for those that are empty or have parts."""
    shown = {
        name.replace("_", " "): _shown(name, value, 400)
        for name, value in fields.items()
        if not isinstance(value, Mapping | list) and value not in ("", None)
    }
    width = max(map(len, shown), default=0) + 2
    for name, text in shown.items():
        page.line((f"{name:<{width}}", "dim"), text, hanging=width)


def _delete(given: Namespace, database: Database) -> int:
    """Delete what is named, or what is older than a time, when whoever is asked says yes."""
    verb = _verb(given)
    option, other = verb.instead
    if when := getattr(given, _BEFORE, None):
        given.before = written(when)
    if verb.first:
        (name,) = [one.name for one in operation_of(given.command, verb.asks).places][:1]
        names = cast("list[str]", getattr(given, name))
        if other and bool(names) == bool(when):
            raise InputError(f"say which {given.command}", hint=f"their ids, or --{option} WHEN")
        if names:
            return _delete_named(given, database, name, names)
    if verb.question:
        what = (
            verb.question if not verb.first else f"all to which nothing came since {given.before}"
        )
        require_yes(f"Delete {what.format(**vars(given))}?", yes=given.yes)
    reply = cast("dict[str, Json] | None", as_json(_asker(given, database, other)()))
    named = next(
        (vars(given)[one.name] for one in operation_of(given.command, verb.asks).places), ""
    )
    return _deleted(given, {f"{given.action}d": [named]} if reply is None else reply)


def _delete_named(given: Namespace, database: Database, name: str, names: list[str]) -> int:
    """Delete things by name, when each was found and whoever is asked says yes."""
    verb = _verb(given)
    first, asked = _asker(given, database, verb.first), _asker(given, database)
    ids = list(dict.fromkeys(getattr(first(**{name: each}), "id", each) for each in names))
    shown = ", ".join(one_line(each, 100) for each in ids)
    require_yes(f"Delete {shown}{verb.question}?", yes=given.yes)
    total: dict[str, Json] = {"deleted": list[Json](ids)}
    for each in ids:
        for word, number in cast("Mapping[str, int]", as_json(asked(**{name: each})) or {}).items():
            total[word] = cast("int", total.get(word, 0)) + number
    return _deleted(given, total)


def _deleted(given: Namespace, said: Mapping[str, Json]) -> int:
    if given.json:
        print(json.dumps(said))
        return 0
    (word, gone), *more = said.items()
    what = (
        ", ".join(map(str, gone))
        if isinstance(gone, list)
        else count(cast("int", gone), given.command.removesuffix("s"))
    )
    freed = "".join(f"; {name}: {number:,}" for name, number in more)
    page_on(sys.stdout).line(f"{word} {what}{freed}")
    return 0


def _export(given: Namespace, database: Database) -> int:
    """Write JSON lines to standard output, or to a file that is there whole or not at all."""
    verb, asked = _verb(given), _asker(given, database)

    def lines() -> Iterator[str]:
        cursor = None
        while True:
            page = asked(limit=MAX_LIMIT, cursor=cursor)
            for one in page.items:
                yield json.dumps(as_json(getattr(one, verb.part) if verb.part else one))
            if not (cursor := page.next_cursor):
                return

    if given.into is None:
        for line in lines():
            print(line)
        return 0
    from assay.reports.files import replacing

    check_targets((given.into,), inputs=())
    number = 0
    with replacing(given.into) as file:
        for line in lines():
            file.write(f"{line}\n")
            number += 1
    if given.json:
        print(json.dumps({"file": given.into, verb.lines: number}))
    else:
        print(f"{given.into}: {count(number, verb.lines.removesuffix('s'))}")
    return 0
