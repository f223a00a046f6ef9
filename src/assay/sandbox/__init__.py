"""Run commands that nobody trusts, and see what came of them."""

from __future__ import annotations

from assay.sandbox.command import CommandResult, Limits, Mount
from assay.sandbox.host import (
    make_directory_inside,
    open_inside,
    remove_inside,
    remove_tree,
    run_on_host,
    run_on_host_sync,
)
from assay.sandbox.probe import Check, SandboxReport, probe
from assay.sandbox.run import run_command, run_command_sync

__all__ = [
    "Check",
    "CommandResult",
    "Limits",
    "Mount",
    "SandboxReport",
    "make_directory_inside",
    "open_inside",
    "probe",
    "remove_inside",
    "remove_tree",
    "run_command",
    "run_command_sync",
    "run_on_host",
    "run_on_host_sync",
]
