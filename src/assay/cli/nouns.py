"""Commands on what is stored: each asks for an operation of `assay.service`, and shows its reply.

What a command takes follows from the operation's parameters. Only what the table of operations
cannot know is said of a command: see `Verb` and `assay.cli.stored`. What commands do is in
`assay.cli.verbs`.
"""

from __future__ import annotations

import inspect
import re
import typing
from argparse import (
    SUPPRESS,
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
)
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib import import_module
from inspect import Parameter
from typing import Any, Literal, TypeAlias

from assay.cli.options import (
    AddAction,
    actions,
    add_db,
    add_json,
    add_yes,
    explain,
    moment,
    positive,
    whole,
)
from assay.frozen import frozen
from assay.reports.page import Page
from assay.service.operation import Input, Operation

Item: TypeAlias = "Mapping[str, Any]"
Column: TypeAlias = "str | Callable[[Item], str]"
"""The field of an item that a column shows, with points to those within; or what it says of one."""

Reply: TypeAlias = Any
"""What an operation returns; which one it is stands in a table, where no type checker sees it."""

BEFORE = "before"
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
        part: The field of each item that an export writes.
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
    return getattr(import_module(f"assay.service.{noun_of(noun).file}"), name)


def is_verb(given: Namespace) -> bool:
    """Whether an action of a command is one of those of its noun."""
    return given.action in noun_of(given.noun).verbs


def noun_of(noun: str) -> Noun:
    """The noun that a command is about."""
    from assay.cli.stored import NOUNS

    return NOUNS[noun]


def verb_of(given: Namespace) -> Verb:
    """What the command that was given asks for."""
    return noun_of(given.noun).verbs[given.action]


def add(parser: ArgumentParser) -> None:
    """Add the commands below a noun, or what the only one takes."""
    noun = parser.prog.rpartition(" ")[2]
    found = noun_of(noun)
    if set(found.verbs) != {"list"}:
        add_verbs(parser, noun)
        return
    explain(parser, _more(found), found.examples)
    parser.set_defaults(noun=noun, action="list")
    _add_common(found, parser)
    _add_inputs(parser, noun, found.verbs["list"])


def add_verbs(parser: ArgumentParser, noun: str) -> AddAction:
    """Add the commands below a noun; what adds others, which are written by hand."""
    found = noun_of(noun)
    explain(parser, _more(found), found.examples)
    parser.set_defaults(noun=noun)
    action = actions(parser, lambda added: _add_common(found, added))
    for name, verb in found.verbs.items():
        about = verb.about or inspect.getdoc(operation_of(noun, verb.asks).function) or ""
        first, _, more = about.partition("\n")
        examples = [line for line in found.examples.splitlines() if _action_of(line) == name]
        summary = first[:1].lower() + first[1:].rstrip(".")
        _add_inputs(action(name, summary, more.strip(), "\n".join(examples)), noun, verb)
    return action


def _action_of(example: str) -> str:
    words = example.partition("#")[0].replace(" server ", " ").split()
    word = "".join(words[2:3])
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
        elif not (verb.lines or one.name == "whole"):
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
    if default is Parameter.empty and one.name != BEFORE:
        parser.add_argument(one.name, metavar=one.name.upper(), help=_help(one))
        return
    called = verb.names.get(one.name, one.spec.alias or one.name).replace("_", "-")
    kinds = typing.get_args(one.annotation) or (one.annotation,)
    words = [word for kind in kinds for word in (typing.get_args(kind) or (kind,))]
    more: dict[str, Any] = {"default": default, "help": _help(one, default)}
    if one.name == BEFORE:
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


def run(given: Namespace) -> int:
    """Run one of the commands on what is stored."""
    from assay.cli import verbs  # help needs none of it

    return verbs.run(given)
