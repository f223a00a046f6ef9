"""A model that works through any agent's shell, whatever the agent calls it."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from assay.conversation.turns import Call, Conversation, Part, Tool, Turn, Unknown
from assay.scoring.json_safe import Json
from assay.testing.fake_model import says

# From what only a shell is called to what may be one.
_SHELLS = ("bash", "shell", "exec_command", "execute", "terminal", "command", "exec", "run")
_COMMANDS = ("command", "cmd", "commands", "script", "code", "input")
_NOT_A_SHELL = re.compile(r"output|stdin|kill|write_stdin|status|session|log", re.IGNORECASE)
_BLOCK = re.compile(r"```(bash|sh|mswea_bash_command)\b")
_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_SECONDS = 60

_LOOK = "grep -n 'self.base' parse.py"
_REPAIR = r"""python3 -c '
import re
source = open("parse.py").read()
start = source.index("def __call__", source.index("class int_convert"))
body = source.index("\n", start) + 1
end = source.index("class convert_first", body)
changed = "        base = self.base\n" + re.sub(r"self\.base\b", "base", source[body:end])
open("parse.py", "w").write(source[:body] + changed + source[end:])
'"""
_CHECK = """python3 -c '
import parse
parser = parse.compile("{:d}")
print([parser.parse(text)[0] for text in ("0x10", "42")])
'"""
_DONE = "The converter kept the base of the first text; it now works with one of each call's own."


def through_shell(*commands: str, done: str = "Done.") -> Callable[[Conversation], object]:
    """What a `FakeModel` does that runs commands, one in each of its turns, and then says so.

    It uses whatever tool of the agent looks most like a shell. Agents without tools that read
    commands from blocks of text get such blocks; whoever offers nothing is told `done`.
    """

    def move(conversation: Conversation) -> object:
        said = [turn for turn in conversation.turns if turn.speaker == "assistant"]
        shell = _shell_of(conversation.tools)
        block = None if shell else _BLOCK.search(_instructions(conversation))
        if shell is None and block is None:
            return done
        # Some agents know the end by a command.
        ends = (f"echo {_SUBMIT}",) if _SUBMIT in _instructions(conversation) else ()
        step = len(said) if block else sum(map(_is_call, said))
        left = (*commands, *ends)[step:]
        if not left:
            return done
        if block is not None:
            return f"THOUGHT: next.\n\n```{block[1]}\n{left[0]}\n```"
        assert shell is not None
        return says(_call(shell, left[0], len(said)))

    return move


def through_recording(directory: str | Path) -> Callable[[Conversation], object]:
    """What a `FakeModel` does that does the work of a recording of a case, through any shell.

    Args:
        directory: The recording, such as ``recordings/fix``: its ``deleted.txt``, ``files/``,
            ``run.sh`` and ``answer.txt`` count, in this order.
    """
    place = Path(directory)
    lines: list[str] = []
    deleted, files, script = place / "deleted.txt", place / "files", place / "run.sh"
    if deleted.is_file():
        gone = deleted.read_text("utf-8").splitlines()
        lines.append("rm -rf -- " + " ".join(shlex.quote(path) for path in gone if path.strip()))
    lines += [
        _writing(str(file.relative_to(files)), file.read_bytes())
        for file in sorted(path for path in files.rglob("*") if path.is_file())
    ]
    if script.is_file():
        lines.append(script.read_text("utf-8"))
    said = place / "answer.txt"
    done = said.read_text("utf-8").strip() if said.is_file() else "Done."
    return through_shell(*lines, done=done)


def _writing(path: str, content: bytes) -> str:
    """A line that writes a file, whatever is in it."""
    coded = base64.b64encode(content).decode()
    parent = shlex.quote(str(Path(path).parent))
    return f"mkdir -p -- {parent} && printf %s {coded} | base64 -d > {shlex.quote(path)}"


def solver(conversation: Conversation) -> object:
    """What a `FakeModel` does that repairs the case of ``examples/repair``, through any shell."""
    return _solve(conversation)


_solve = through_shell(_LOOK, _REPAIR, _CHECK, done=_DONE)


def _instructions(conversation: Conversation) -> str:
    turns = (turn.text for turn in conversation.turns if turn.speaker in ("system", "user"))
    return "\n".join(turns)


def _is_call(turn: Turn) -> bool:
    return any(isinstance(part, Call | Unknown) for part in turn.parts)


def _shell_of(tools: tuple[Tool, ...]) -> Tool | None:
    for word in _SHELLS:
        for tool in tools:
            if word in tool.name.lower() and not _NOT_A_SHELL.search(tool.name):
                return tool
    return None


def _call(tool: Tool, command: str, number: int) -> Part:
    declared = "" if tool.own is None else str(tool.own.get("type", ""))
    if declared in ("local_shell", "shell") and tool.own is not None:
        return _own_call(declared, command, number)
    if tool.kind == "custom":
        return Call("", tool.name, command, "custom")
    properties = _object(tool.schema.get("properties"))
    called = next((name for name in _COMMANDS if name in properties), None)
    required = tool.schema.get("required")
    names = (
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    )
    called = called or next(iter((*names, *properties)), "command")
    is_list = "array" in _types(_object(properties.get(called)))
    given: dict[str, Json] = {called: ["bash", "-lc", command] if is_list else command}
    for name in names:
        given.setdefault(name, _any_value(_object(properties.get(name))))
    return Call("", tool.name, json.dumps(given))


def _own_call(kind: str, command: str, number: int) -> Unknown:
    """A call of a shell that is part of OpenAI's responses."""
    action: dict[str, Json] = (
        {"type": "exec", "command": ["bash", "-lc", command], "env": {}}
        if kind == "local_shell"
        else {"commands": [command], "timeout_ms": _SECONDS * 1000}
    )
    item: dict[str, Json] = {
        "type": f"{kind}_call",
        "call_id": f"call_{number}",
        "status": "completed",
        "action": action,
    }
    return Unknown("responses", item)


def _any_value(schema: Mapping[str, Json]) -> Json:
    """A value that is asked for, and that nothing depends on."""
    menu = schema.get("enum")
    if isinstance(menu, list) and menu:
        return menu[0]
    types = _types(schema)
    known: dict[str, Json] = {"boolean": False, "array": [], "object": {}}
    if "integer" in types or "number" in types:
        return _SECONDS
    return next((known[name] for name in types if name in known), "Repair the parser")


def _types(schema: Mapping[str, Json]) -> list[str]:
    """The types of a value, also of one that may be none."""
    kind = schema.get("type")
    found: list[Json] = list(kind) if isinstance(kind, list) else [kind]
    menu = schema.get("anyOf")
    found += [_object(one).get("type") for one in menu] if isinstance(menu, list) else []
    return [name for name in found if isinstance(name, str)]


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
