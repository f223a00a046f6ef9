"""What the commands on stored things do: they ask for their operation, and show its reply.

``--json`` is that reply as the API has it.
"""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from assay.cli.options import (
    check_targets,
    is_shared,
    key_and_number,
    moment,
    require_yes,
    store_place,
    store_there,
    write_lines,
)
from assay.cli.stored_commands import (
    BEFORE,
    Column,
    Item,
    Reply,
    Verb,
    noun_of,
    operation_of,
    verb_of,
)
from assay.errors import InputError, LockedError, NotFoundError
from assay.reports.figures import count
from assay.reports.page import TextPage, page_on
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.service.arguments import check
from assay.service.local import ask, do, local_desk
from assay.service.operation import MAX_LIMIT
from assay.store.database import Database
from assay.store.database import moment as written


def run(given: Namespace) -> int:
    """Ask for the operation of a command, and show its reply."""
    verb = verb_of(given)
    with store_of(given, make=given.action == "create") as database:
        if verb.columns:
            return _list(given, database)
        if verb.lines:
            return _export(given, database)
        if operation_of(given.noun, verb.asks).method == "DELETE":
            return _delete(given, database)
        return _show(given, database)


@contextmanager
def store_of(given: Namespace, *, make: bool = False) -> Generator[Database]:
    """The store; what it says of what is missing, or locked, says where.

    Args:
        given: The options.
        make: Whether to make it if it is not there.
    """
    with Database.open(store_place() if make else store_there()) as database:
        try:
            yield database
        except NotFoundError as error:
            message = f"{error.message}, in the store {database.place}"
            raise NotFoundError(message, location=error.location, hint=error.hint) from error
        except LockedError as error:
            raise LockedError(error.message, hint=f"first: {_unlock(given)}") from error


def _unlock(given: Namespace) -> str:
    key = getattr(given, "key", getattr(given, "grader_key", "KEY"))
    words = ["assay", "graders", "lock", key, "--unlock"]
    if given.project != "default":
        words += ["--project", given.project]
    if given.db and not is_shared():
        words += ["--db", given.db]
    return shlex.join(words)


def _asker(given: Namespace, database: Database, name: str = "") -> Callable[..., Reply]:
    """What asks for a command's operation, or for another one of its noun.

    It gives the operation what options say, but for what it is told itself.
    """
    found = operation_of(given.noun, name or verb_of(given).asks)
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
    verb = verb_of(given)
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
    vars(given).update({"grader_key": key, parameter: number})


def _list(given: Namespace, database: Database) -> int:
    """Show a list, page after page; options that no operation knows choose among what it has."""
    verb = verb_of(given)
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
        goes_on = reply["next"] is not None and len(new) == len(items)
        place = {"after": reply["next"], "offset": 0} if goes_on else {}
        if not place or len(found) >= given.limit:
            break
    is_more = bool(place) or len(found) > given.limit
    reply["items"] = found = found[: given.limit]
    reply["next"] = place.get("after")
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
        on = f"--limit {2 * given.limit}" if is_chosen else f"--after {place['after']}"
        page.line((f"more: {on}", "dim"))
    return 0


def _is_new(item: Item, given: Namespace) -> bool:
    return moment(item[verb_of(given).since]) >= given.since


def _is_like(item: Item, given: Namespace) -> bool:
    only = verb_of(given).only
    return only is None or only[0](item) == given.status


def _nothing(given: Namespace) -> str:
    """What is said of an empty list, unless options chose nothing from it."""
    ways = {"command", "noun", "action", "db", "project", "json", "limit", "after", "of", "names"}
    if any(value for name, value in vars(given).items() if name not in ways):
        return f"no {given.noun} like that"
    where = f"no {given.noun} in project {one_line(getattr(given, 'project', ''), 100)!r}"
    return noun_of(given.noun).empty or where


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


def say_fields(page: TextPage, fields: Reply) -> None:
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
    verb = verb_of(given)
    option, other = verb.instead
    if when := getattr(given, BEFORE, None):
        given.before = written(when)
    if verb.first:
        (name,) = [one.name for one in operation_of(given.noun, verb.asks).places][:1]
        names = cast("list[str]", getattr(given, name))
        if other and bool(names) == bool(when):
            raise InputError(f"say which {given.noun}", hint=f"their ids, or --{option} WHEN")
        if names:
            return _delete_named(given, database, name, names)
    if getattr(given, BEFORE, "") is None:
        raise InputError(f"say which {given.noun}", hint="--before WHEN: 2026-11-21, 90d")
    if verb.question:
        what = (
            verb.question if not verb.first else f"all to which nothing came since {given.before}"
        )
        require_yes(f"Delete {what.format(**vars(given))}?", yes=given.yes)
    reply = cast("dict[str, Json] | None", as_json(_asker(given, database, other)()))
    named = next((vars(given)[one.name] for one in operation_of(given.noun, verb.asks).places), "")
    return _deleted(given, {f"{given.action}d": [named]} if reply is None else reply)


def _delete_named(given: Namespace, database: Database, name: str, names: list[str]) -> int:
    """Delete things by name, when each was found and whoever is asked says yes."""
    verb = verb_of(given)
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
        else count(cast("int", gone), given.noun.removesuffix("s"))
    )
    freed = "".join(f"; {name}: {number:,}" for name, number in more)
    page_on(sys.stdout).line(f"{word} {what}{freed}")
    return 0


def _export(given: Namespace, database: Database) -> int:
    """Write JSON lines to standard output, or to a file that is there whole or not at all."""
    verb, asked = verb_of(given), _asker(given, database)

    def lines() -> Iterator[str]:
        after = None
        while True:
            page = asked(limit=MAX_LIMIT, after=after, whole=True)
            for one in page:
                yield json.dumps(as_json(getattr(one, verb.part)))
            if (after := page.next) is None:
                return

    check_targets((given.out,), inputs=())
    number = write_lines(lines(), given.out)
    if given.out is None:
        return 0
    if given.json:
        print(json.dumps({"file": given.out, verb.lines: number}))
    else:
        print(f"{given.out}: {count(number, verb.lines.removesuffix('s'))}")
    return 0
