"""Tools over the workspace of a run: each call is a command in the agent's sandbox.

The host never opens a path that a model names. What a call can reach is what the sandbox shows;
what it can take is what the sandbox allows, and both are told to the model as they are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from assay.agents.tools import AgentTool, Arguments, ToolOutcome, ToolRefusalError
from assay.conversation.turns import Tool
from assay.frozen import frozen
from assay.sandbox import CommandResult, Limits, let_us_in, run_command
from assay.scoring.json_safe import Json
from assay.types.submission import Workspace

WORKSPACE_TOOLS = ("bash", "read", "write", "edit", "search")
"""Names of the tools that there are over a workspace."""

_OUTPUT = 32_000
_MOST_LINES = 2_000
_MOST_COMMAND = 100_000  # the kernel takes no single argument above 128 KiB
_MOST_PATH = 4_096
_MOST_EDITED = 8 << 20
_MOST_FOUND = 200
_FILE_SECONDS = 60.0
_FAILED = 3

# Images may have no bash.
_BASH = '[ ! -x /bin/bash ] || exec /bin/bash -c "$1" 2>&1; exec /bin/sh -c "$1" 2>&1'
_READ = f"""
if [ -d "$1" ]; then exec ls -1Apb -- "$1"; fi
[ -e "$1" ] || [ -L "$1" ] || {{ echo "there is no such file" >&2; exit {_FAILED}; }}
[ -f "$1" ] || {{ echo "it is neither a file nor a directory" >&2; exit {_FAILED}; }}
[ -r "$1" ] || {{ echo "it may not be read" >&2; exit {_FAILED}; }}
tail -n "+$2" -- "$1" | head -n "$3" | head -c "$4"
"""
_WRITE = f"""
if [ -d "$1" ]; then echo "it is a directory" >&2; exit {_FAILED}; fi
[ ! -e "$1" ] || [ -f "$1" ] || {{ echo "it is not a file" >&2; exit {_FAILED}; }}
above=${{1%/*}}
[ -d "${{above:-/}}" ] || mkdir -p -- "$above" || exit {_FAILED}
cat > "$1" || exit {_FAILED}
"""
_FETCH = f"""
[ -e "$1" ] || {{ echo "there is no such file" >&2; exit {_FAILED}; }}
[ -f "$1" ] || {{ echo "it is not a file" >&2; exit {_FAILED}; }}
[ -r "$1" ] && [ -w "$1" ] || {{ echo "it may not be changed" >&2; exit {_FAILED}; }}
head -c "$2" -- "$1" | base64
"""
_SEARCH = """
if [ -n "$1" ]; then
  grep -rnIE -D skip --exclude-dir=.git ${3:+"--include=$3"} -e "$1" -- "$2"
else
  find "$2" -name .git -prune -o ! -type d ${3:+-name "$3"} -print
fi | head -n "$4" | cut -c 1-400
"""

_PATH: dict[str, Json] = {
    "type": "string",
    "minLength": 1,
    "description": "Relative to the working directory, or absolute.",
}


@frozen(kw_only=True)
class WorkspaceTools:
    """Makes the tools over one workspace.

    Attributes:
        workspace: It.
        network: Whether commands may use the network.
        seconds: Time that a command of the model's own may take.
        keeps_changes: Whether what a command changes stays.
    """

    workspace: Workspace
    network: bool = False
    seconds: float = 300.0
    keeps_changes: bool = True

    def tool(self, name: str) -> AgentTool:
        """The tool of a name of `WORKSPACE_TOOLS`."""
        description, properties, required = _DECLARED[name]
        schema: dict[str, Json] = {
            "type": "object",
            "properties": dict(properties),
            "required": list[Json](required),
            "additionalProperties": False,
        }
        uses: Mapping[str, Callable[[Arguments], Awaitable[ToolOutcome]]] = {
            "bash": self._bash,
            "read": self._read,
            "write": self._write,
            "edit": self._edit,
            "search": self._search,
        }
        return AgentTool(
            declared=Tool(name=name, description=description, schema=schema),
            use=uses[name],
            reads_only=name in ("read", "search"),
        )

    async def _run(
        self,
        argv: list[str],
        *,
        stdin: bytes | None = None,
        seconds: float = _FILE_SECONDS,
        output: int = _OUTPUT,
        network: bool = False,
    ) -> CommandResult:
        let_us_in(self.workspace.path)
        return await run_command(
            argv,
            workspace=self.workspace,
            changes="keep" if self.keeps_changes else "discard",
            network=network,
            limits=Limits(wall_seconds=seconds, output_bytes=output),
            stdin=stdin,
        )

    async def _bash(self, given: Arguments) -> ToolOutcome:
        command = str(given["command"])
        if "\0" in command or len(command.encode()) > _MOST_COMMAND:
            raise ToolRefusalError(
                "the command is too long, or has a NUL character: write it to a file"
            )
        result = await self._run(
            ["/bin/sh", "-c", _BASH, "sh", command], seconds=self.seconds, network=self.network
        )
        text = result.stdout
        if result.status == "timed_out":
            text += f"\n[stopped: it took longer than {self.seconds:g} s]"
        elif result.status == "output_limit":
            text += "\n[stopped: it wrote too much output]"
        elif result.exit_code:
            text += f"\n[exit status {result.exit_code}]"
        return ToolOutcome.said(text or "(no output)", is_error=result.status != "exited")

    async def _read(self, given: Arguments) -> ToolOutcome:
        path = _path(given)
        first, count = _number(given, "offset", 1), _number(given, "limit", _MOST_LINES)
        count = min(count, _MOST_LINES)
        argv = ["/bin/sh", "-c", _READ, "sh", path, str(first), str(count + 1), str(_OUTPUT + 1)]
        result = await self._run(argv, output=4 * _OUTPUT)
        _require_done(result, given)
        return ToolOutcome.said(_page(result.stdout, first, count))

    async def _write(self, given: Arguments) -> ToolOutcome:
        path = _path(given)
        content = str(given["content"]).encode()
        result = await self._run(["/bin/sh", "-c", _WRITE, "sh", path], stdin=content)
        _require_done(result, given)
        return ToolOutcome.said(f"wrote {len(content)} bytes to {given['path']}")

    async def _edit(self, given: Arguments) -> ToolOutcome:
        path = _path(given)
        fetched = await self._run(
            ["/bin/sh", "-c", _FETCH, "sh", path, str(_MOST_EDITED + 1)], output=2 * _MOST_EDITED
        )
        _require_done(fetched, given)
        try:
            before = base64.b64decode(fetched.stdout)
        except binascii.Error:
            raise ToolRefusalError(f"{given['path']}: it could not be read whole") from None
        if len(before) > _MOST_EDITED:
            raise ToolRefusalError(
                f"{given['path']} has more than {_MOST_EDITED >> 20} MiB: use bash"
            )
        old, new = str(given["old"]).encode(), str(given["new"]).encode()
        found = before.count(old)
        if not found:
            raise ToolRefusalError(
                f"{given['path']} does not hold that text; it must be the same to a space"
            )
        if found > 1 and given.get("all") is not True:
            raise ToolRefusalError(
                f"{given['path']} holds that text {found} times: give more of it, or all"
            )
        after = before.replace(old, new)
        result = await self._run(["/bin/sh", "-c", _WRITE, "sh", path], stdin=after)
        _require_done(result, given)
        places = "1 place" if found == 1 else f"{found} places"
        return ToolOutcome.said(f"changed {places} of {given['path']}")

    async def _search(self, given: Arguments) -> ToolOutcome:
        path = _path(given)
        pattern, name = str(given.get("pattern") or ""), str(given.get("name") or "")
        if not pattern and not name:
            raise ToolRefusalError("give a pattern of text, a name of files, or both")
        if "\0" in pattern + name or max(map(len, (pattern, name))) > _MOST_PATH:
            raise ToolRefusalError("the pattern is too long, or has a NUL character")
        argv = ["/bin/sh", "-c", _SEARCH, "sh", pattern, path, name, str(_MOST_FOUND + 1)]
        result = await self._run(argv)
        lines = result.stdout.removesuffix("\n").split("\n") if result.stdout else []
        if result.status != "exited" or (not lines and result.stderr.strip()):
            raise ToolRefusalError(_why_failed(result) or result.stderr.strip()[-500:])
        text = "\n".join(lines[:_MOST_FOUND]) or "nothing was found"
        if len(lines) > _MOST_FOUND:
            text += f"\n[only the first {_MOST_FOUND} are shown]"
        return ToolOutcome.said(text)


def offered_over(workspace: Workspace, *, network: bool) -> dict[str, AgentTool]:
    """All tools over a workspace, by name; see `assay.tasks.task.WorkspaceTooling`."""
    over = WorkspaceTools(workspace=workspace, network=network)
    return {name: over.tool(name) for name in WORKSPACE_TOOLS}


_Declared = tuple[str, Mapping[str, Json], tuple[str, ...]]

_DECLARED: Mapping[str, _Declared] = {
    "bash": (
        "Run a shell command in the working directory. Only files last from one call to the next.",
        {
            "command": {
                "type": "string",
                "minLength": 1,
                "description": "Lines for bash, or for sh where there is none.",
            }
        },
        ("command",),
    ),
    "read": (
        f"Read a text file, at most {_MOST_LINES} lines at a time; or list a directory.",
        {
            "path": _PATH,
            "offset": {"type": "integer", "minimum": 1, "description": "First line, from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "Lines."},
        },
        ("path",),
    ),
    "write": (
        "Write a file, in the place of what is there; directories are made.",
        {"path": _PATH, "content": {"type": "string", "description": "All of it."}},
        ("path", "content"),
    ),
    "edit": (
        "Replace a text in a file by another one.",
        {
            "path": _PATH,
            "old": {
                "type": "string",
                "minLength": 1,
                "description": "As it stands in the file, spaces and line ends included; once.",
            },
            "new": {"type": "string", "description": "What takes its place."},
            "all": {"type": "boolean", "description": "Replace it wherever it stands."},
        },
        ("path", "old", "new"),
    ),
    "search": (
        "Find lines of files by a pattern; or files by name.",
        {
            "pattern": {"type": "string", "description": "An extended regular expression."},
            "path": {"type": "string", "description": "Where; the working directory by default."},
            "name": {"type": "string", "description": "Names of files, such as *.py."},
        },
        (),
    ),
}


def _path(given: Arguments) -> str:
    """A path that no program takes for an option.

    Raises:
        ToolError: If no file can be called so.
    """
    path = str(given.get("path") or ".")
    if "\0" in path or len(path.encode()) > _MOST_PATH:
        raise ToolRefusalError("the path is too long, or has a NUL character")
    return path if path == "." or path.startswith("/") else f"./{path}"


def _number(given: Arguments, name: str, default: int) -> int:
    value = cast("float", given.get(name, default))
    return max(1, min(int(value), 1 << 40))


def _require_done(result: CommandResult, given: Arguments) -> None:
    """Tell the model why a command of ours could not do its work.

    Raises:
        ToolError: If it could not.
    """
    if why := _why_failed(result):
        raise ToolRefusalError(f"{given['path']}: {why}")


def _why_failed(result: CommandResult) -> str:
    """What kept a command of ours from its work; empty if nothing did."""
    if result.status == "timed_out":
        return "it took too long"
    if result.status == "output_limit":
        return "it is too much"
    if result.exit_code == 0:
        return ""
    return result.stderr.strip()[-500:] or f"exit status {result.exit_code}"


def _page(text: str, first: int, count: int) -> str:
    """What was read, and what is missing of it."""
    notes: list[str] = []
    if len(text.encode()) > _OUTPUT:
        text = text.encode()[:_OUTPUT].decode("utf-8", "ignore")
        line = first + text.count("\n")
        notes.append(f"[cut after {_OUTPUT} bytes, in line {line}]")
    else:
        lines = text.split("\n")
        if len(lines) > count and any(lines[count:]):
            text = "\n".join(lines[:count])
            notes.append(f"[there is more: go on with offset {first + count}]")
    if "\0" in text or "\N{REPLACEMENT CHARACTER}" in text:
        notes.append("[not all of it is text: what is not is shown as \N{REPLACEMENT CHARACTER}]")
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if not text:
        notes.append("[there is nothing]")
    return text + ("\n" if text and not text.endswith("\n") and notes else "") + "\n".join(notes)
