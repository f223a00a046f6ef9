"""MCP servers that a case declares: its ``artifacts.mcp``, in the usual ``mcpServers`` form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from assay.documents import problems_to_error, read_document
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.tasks.rules import Ruled, mount_problems
from assay.types import codec
from assay.types.codec import Problem


@frozen(kw_only=True)
class McpServer(Ruled):
    """A program that speaks MCP on its standard input and output, run in a sandbox.

    Attributes:
        command: The program, as it is found in the sandbox.
        args: Its arguments.
        env: Variables it is started with; no other reaches it.
        mounts: Files and directories that it may read, as those of a harness: a relative path is
            shown below ``/suite`` by that path, an absolute one where it is.
        type: How it is spoken with.
        root: Directory that relative mounts are meant from: that of the file.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: tuple[str, ...] = ()
    type: Literal["stdio"] = "stdio"
    root: str = ""

    def _problems(self) -> Iterator[Problem]:
        if not self.command.strip():
            yield Problem(("command",), "command names no program")
        yield from mount_problems(self.mounts)


@frozen(kw_only=True)
class _Declared:
    """What the file says."""

    mcpServers: Mapping[str, McpServer]  # noqa: N815 - as the form has it


def load_mcp_servers(file: str) -> dict[str, McpServer]:
    """Read a file of MCP servers, by name.

    Raises:
        DocumentError: With everything that is wrong in it.
    """
    problems: list[Problem] = []
    document = read_document(file, problems)
    found = codec.read(_Declared, _stdio(document.data), (), problems)
    if problems:
        raise problems_to_error(problems, document)
    assert isinstance(found, _Declared)
    root = str(Path(file).absolute().parent)
    return {name: replace(server, root=root) for name, server in found.mcpServers.items()}


def _stdio(data: Json) -> Json:
    """What a file says, without the servers that it says are off."""
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(servers, dict):
        return data
    kept: dict[str, Json] = {}
    for name, server in servers.items():
        said = dict(server) if isinstance(server, dict) else server
        if not isinstance(said, dict) or said.pop("disabled", None) is not True:
            kept[name] = said
    return {**data, "mcpServers": kept}
