"""Run commands that nobody trusts, and see what came of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.sandbox.checks import SandboxCheck, SandboxReport, probe
    from assay.sandbox.command import CommandResult, Door, Limits, Mount
    from assay.sandbox.host import (
        let_us_in,
        make_directory_inside,
        open_inside,
        remove_inside,
        remove_tree,
        run_on_host,
    )
    from assay.sandbox.interactive import OpenCommand, open_command
    from assay.sandbox.run import run_command, run_command_sync

__all__ = [
    "CommandResult",
    "Door",
    "Limits",
    "Mount",
    "OpenCommand",
    "SandboxCheck",
    "SandboxReport",
    "let_us_in",
    "make_directory_inside",
    "open_command",
    "open_inside",
    "probe",
    "remove_inside",
    "remove_tree",
    "run_command",
    "run_command_sync",
    "run_on_host",
]

_PLACES = {
    ".checks": ("SandboxCheck", "SandboxReport", "probe"),
    ".command": ("CommandResult", "Door", "Limits", "Mount"),
    ".host": (
        "let_us_in",
        "make_directory_inside",
        "open_inside",
        "remove_inside",
        "remove_tree",
        "run_on_host",
    ),
    ".interactive": ("OpenCommand", "open_command"),
    ".run": ("run_command", "run_command_sync"),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}

__getattr__ = names_on_demand(__name__, _PLACE)
