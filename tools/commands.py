"""The command line as whoever learns it sees it: its leaves (commands and actions) and options.

What every command may take means the same everywhere and is learned once: it counts once. A test
holds both numbers below ceilings. ``python -m tools.commands`` prints the list.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import cast

from assay.cli.main import COMMANDS, command_parser

COMMON = ("--db", "--json", "--project")
"""Options that mean the same wherever they are taken."""


def leaves() -> dict[str, list[str]]:
    """Every command that can be given, with its own options; the common ones stand nowhere."""
    return {
        leaf: [option for option in options if option not in COMMON]
        for command in COMMANDS
        for leaf, options in _below(command, command_parser(command))
    }


def options() -> int:
    """How many options there are to learn."""
    return len(COMMON) + sum(map(len, leaves().values()))


def _below(name: str, parser: ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    own: list[str] = []
    actions: dict[str, object] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        choices = cast("object", action.choices)
        if isinstance(choices, Mapping):
            actions.update(cast("Mapping[str, object]", choices))
        elif action.option_strings and action.dest != "help":
            own.append(action.option_strings[-1])
    if not actions:
        yield name, own
    for word, below in actions.items():
        assert isinstance(below, ArgumentParser)
        yield from _below(f"{name} {word}", below)


if __name__ == "__main__":
    found = leaves()
    for leaf, own in found.items():
        print(f"{leaf:<22} {' '.join(name.removeprefix('--') for name in own)}")
    print()
    for name, times in Counter(name for own in found.values() for name in own).most_common():
        print(f"{times:>3} {name}")
    different = len({name for own in found.values() for name in own} | set(COMMON))
    print(f"\n{len(found)} leaves, {options()} options, {different} different ones")
