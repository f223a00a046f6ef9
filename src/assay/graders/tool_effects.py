"""What a tool call does, by its name and its input: for bans generously, for demands strictly."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from assay.graders.shell_lines import Simple, simple_commands
from assay.scoring.json_safe import Json
from assay.types.trace import ToolCall, ToolKind

__all__ = ["Touch", "command_line", "does_nothing", "is_scratch", "possible_kinds", "touches"]

_VERBS: Mapping[str, str] = {
    "write": "write edit create delete remove rm move mv rename append patch apply put upload "
    "update insert replace save set modify touch mkdir copy cp truncate commit overwrite push",
    "read": "read get view cat open load show head tail peek",
    "execute": "exec execute run shell bash sh terminal command cmd eval python invoke spawn",
    "search": "search grep find query glob list ls lookup",
    "fetch": "fetch http https url browse browser download web request navigate curl crawl scrape",
}
_KIND_OF_VERB = {verb: kind for kind, verbs in _VERBS.items() for verb in verbs.split()}
_HARMLESS = frozenset({"todo", "todos", "think", "thinking", "plan", "ask", "finish", "task"})
_LINES = ("command", "cmd", "script", "commands", "shell_command", "line")
_WRITERS = frozenset(
    {
        *("rm", "rmdir", "unlink", "shred", "mv", "touch", "mkdir", "truncate", "tee", "patch"),
        *("chmod", "chown", "ln", "ed", "ex", "vi", "vim", "nano"),
    }
)
_READERS = frozenset(
    {
        *("cat", "head", "tail", "less", "more", "tac", "nl", "od", "xxd", "hexdump", "strings"),
        *("base64", "base32", "sort", "uniq", "cut", "wc", "awk", "gawk", "diff", "cmp", "comm"),
        *("jq", "view", "bat", "zcat", "tar", "zip", "gzip", "source", ".", "paste", "fold", "rev"),
        *("md5sum", "sha1sum", "sha256sum", "ln", "mv", "ed", "ex", "vi", "vim", "nano"),
    }
)
_GREPS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "perl"})
_COPIERS = frozenset({"cp", "install", "rsync", "scp"})
_FETCHERS = frozenset(
    {"curl", "wget", "ftp", "sftp", "ssh", "scp", "nc", "ncat", "telnet", "aria2c", "lynx", "w3m"}
)
_SEARCHERS = frozenset({"find", "fd", "grep", "egrep", "rg", "ag", "ack", "ls", "tree", "locate"})
_INTERPRETERS = re.compile(r"(?:python|pypy|perl|ruby|node|php|deno|bun|lua)[\d.]*")
_GIT_WRITES = frozenset({"checkout", "restore", "rm", "mv", "apply", "clean", "reset", "switch"})
_GIT_READS = frozenset({"diff", "show", "grep", "blame", "cat-file", "log"})
_IDLE = frozenset(
    {
        *(
            ":",
            "true",
            "false",
            "echo",
            "printf",
            "sleep",
            "cd",
            "pushd",
            "popd",
            "test",
            "[",
            "[[",
        ),
        *("wait", "export", "set", "unset", "type", "which", "alias", "umask", "clear", "history"),
        *("pwd", "date", "whoami", "hostname", "id", "uname", "let", "trap", "seq", "read", "tty"),
        *(
            "declare",
            "local",
            "hash",
            "break",
            "continue",
            "command",
            "builtin",
            "fi",
            "done",
            "esac",
        ),
        *("for", "case", "in", "]", "]]"),
    }
)
_ABOUT_ITSELF = frozenset({"--version", "-V", "--help", "-h"})
_NOTHING = ("/dev/", "/proc/", "/sys/")
_SCRATCH = (*_NOTHING, "/tmp/", "/var/tmp/")  # noqa: S108 - words of a trace
_OLD = frozenset({"old_string", "old_str", "old_text", "old", "search"})
_NEW = frozenset({"new_string", "new_str", "new_text", "new", "replace"})
_CONTENT = frozenset({"content", "contents", "text", "file_text", "data", "new_source", *_NEW})


@dataclass(frozen=True, slots=True)
class Touch:
    """A path that a command names, and what it does there.

    Attributes:
        path: The path; signs of a glob that the shell expands are those of
            `assay.graders.shell_lines.LIVE`.
        kinds: Kinds of work that are done there.
        deep: Whether they are done to all that is below it, too.
    """

    path: str
    kinds: frozenset[str]
    deep: bool = False


def possible_kinds(call: ToolCall, *, is_told: bool = True) -> frozenset[str]:
    """The kinds of work that a tool may do: where its name tells nothing, by what it is given.

    Args:
        call: The call.
        is_told: Whether it is known what it is given; without that it may be of any kind.
    """
    if call.kind not in (None, "other"):
        return frozenset({call.kind})
    name = call.raw_name or call.name
    own = _kinds_named(name.rpartition("__")[2]) or _kinds_named(name)
    words = _name_words(name)
    if words & _HARMLESS and not (own and name.startswith("mcp")):
        return frozenset({"other"})
    return own or (_kinds_given(call.arguments) if is_told else frozenset(get_args(ToolKind)))


def _kinds_given(arguments: Mapping[str, Json]) -> frozenset[str]:
    """What could be done with a call's input: nothing is fetched without an address."""
    texts = [text for text in arguments.values() if text not in (None, "", True, False)]
    named = {name.lower() for name in arguments}
    found = {"other"}
    if texts:
        found |= {"read", "write", "search"}
    if named & {*_LINES, "code", "args", "argv"}:
        found.add("execute")
    if named & {"url", "uri", "host", "address"} or any("://" in str(text) for text in texts):
        found.add("fetch")
    return frozenset(found)


def _kinds_named(name: str) -> frozenset[str]:
    return frozenset(_KIND_OF_VERB[word] for word in _name_words(name) if word in _KIND_OF_VERB)


def _name_words(name: str) -> frozenset[str]:
    spread = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[a-z]+", spread.lower()))


def command_line(arguments: Mapping[str, Json]) -> str:
    """The shell line among a call's arguments; empty where there is none."""
    for name in _LINES:
        given = arguments.get(name)
        if isinstance(given, str):
            return given
        if isinstance(given, list) and given:
            words = [str(word) for word in given]
            return words[-1] if len(words) > 2 and words[1].endswith("c") else " ".join(words)
    return ""


def touches(line: str) -> Iterator[Touch]:
    """The paths that a shell line names, and what it does there; fetching touches ``""``."""
    for command in simple_commands(line):
        for path in command.into:
            if not path.startswith(_NOTHING):
                yield Touch(command.path(path), frozenset({"write"}))
        for path in command.out_of:
            yield Touch(command.path(path), frozenset({"read"}))
        kinds = _kinds_of_program(command)
        if kinds and not kinds <= {"read", "write"}:
            yield Touch("", kinds - {"read", "write"})
        for word, done in _operands(command):
            path = command.path(word)
            # What a recursive reader passes over on its way is not what was banned.
            deep = "write" in done or posixpath.normpath(word) not in (".", "/workspace", "/")
            yield Touch(path, done, deep=deep and bool(done))


def _kinds_of_program(command: Simple) -> frozenset[str]:
    program, found = command.program, set[str]()
    args = command.words[1:]
    if program in _FETCHERS or (program == "git" and {"clone", "fetch", "pull"} & set(args[:3])):
        found.add("fetch")
    if program in ("pip", "pip3", "npm", "cargo", "go") and {"install", "download"} & set(args):
        found.add("fetch")
    if program in _SEARCHERS:
        found.add("search")
    return frozenset(found)


def _operands(command: Simple) -> Iterator[tuple[str, frozenset[str]]]:
    """The words of a command that may be paths, and what is done to each."""
    program, args = command.program, command.words[1:]
    plain = [word for word in args if not word.startswith("-") or word == "-"]
    options = [word for word in args if word not in plain]
    read, write, both = frozenset({"read"}), frozenset({"write"}), frozenset({"read", "write"})
    if program in _COPIERS:
        yield from ((word, read) for word in plain[:-1])
        yield from ((word, write) for word in plain[-1:])
    elif program in _GREPS:
        in_place = program in ("sed", "perl") and any(
            re.match(r"-[a-z]*i|--in-place", word) for word in options
        )
        listed = plain if any(word in ("-e", "-f") for word in options) else plain[1:]
        yield from ((word, both if in_place else read) for word in listed)
    elif program == "dd":
        yield from ((word[3:], write) for word in args if word.startswith("of="))
        yield from ((word[3:], read) for word in args if word.startswith("if="))
    elif program == "find":
        acts = {"-delete", "-exec", "-execdir", "-fprint"} & set(args)
        yield from ((word, both if acts else frozenset[str]()) for word in plain)
    elif program == "git":
        verb = next(iter(plain), "")
        done = write if verb in _GIT_WRITES else read if verb in _GIT_READS else frozenset[str]()
        yield from ((word, done) for word in plain[1:] if word not in (".", "./"))
    elif _INTERPRETERS.fullmatch(program) and options[:1] and options[0][-1:] in "ce":
        code = args[args.index(options[0]) + 1 :][:1]
        for text in code:
            yield from ((word, both) for word in re.split(r"[\s;(){}'\"`=,:]+", text) if word)
    else:
        done = {"write"} if program in _WRITERS else set[str]()
        done |= {"read"} if program in _READERS else set()
        yield from ((word, frozenset(done)) for word in plain)


def does_nothing(call: ToolCall) -> bool:
    """Whether a call that ran is none for all that it was asked to do."""
    arguments = call.arguments
    if call.kind == "execute":
        line = command_line(arguments)
        if line or any(name in arguments for name in _LINES):
            return _is_idle_line(line)
        texts = [text for text in arguments.values() if isinstance(text, str)]
        return bool(texts) and all(text.strip() in ("", "pass", "...", "None") for text in texts)
    if call.kind == "write":
        edits = arguments.get("edits")
        if isinstance(edits, list) and edits:
            return all(isinstance(edit, dict) and _changes_nothing(edit) for edit in edits)
        return _changes_nothing(arguments)
    return False


def _changes_nothing(arguments: Mapping[str, Json]) -> bool:
    old = [text for name, text in arguments.items() if name in _OLD]
    new = [text for name, text in arguments.items() if name in _NEW]
    if old and new:
        return old == new
    given = [text for name, text in arguments.items() if name in _CONTENT]
    return bool(given) and not old and all(isinstance(t, str) and not t.strip() for t in given)


def _is_idle_line(line: str) -> bool:
    before = ""
    for command in simple_commands(line):
        program = command.program
        if program in ("exit", "return"):
            return True
        never = (command.before == "&&" and before == "false") or (
            command.before == "||" and before in ("true", ":")
        )
        before = before if never else program
        if not never and not _is_idle(command):
            return False
    return True


def _is_idle(command: Simple) -> bool:
    program, args = command.program, command.words[1:]
    if any(not path.startswith(_SCRATCH) for path in command.into):
        return False
    if not program or program in _IDLE or (args and set(args) <= _ABOUT_ITSELF):
        return True
    named = [word for word in args if not word.startswith("-")]
    if program in ("grep", "egrep", "fgrep", "sed", "rg"):
        named = named[1:] or ["."]
    if program in _READERS or program in _GREPS:
        sources = [*named, *command.out_of]
        return all(word.startswith(_NOTHING) or word.isdigit() for word in sources)
    if program in ("touch", "mkdir", "tee", "rm"):
        return all(word.startswith(_SCRATCH) for word in named)
    if _INTERPRETERS.fullmatch(program) and args[:1] and args[0] in ("-c", "-e"):
        return "".join(args[1:2]).strip(" ;\n") in ("", "pass", "...", "None", "0", "1")
    # What a shell is given as a line is looked at by itself.
    is_shell = program in ("sh", "bash", "dash", "zsh") and any(map(_is_line, args))
    return is_shell or program == "eval"


def _is_line(word: str) -> bool:
    return re.fullmatch(r"-\w*c", word) is not None


def is_scratch(call: ToolCall, roots: Sequence[str]) -> bool:
    """Whether a call reads or writes only where no work is: devices, and places for scratch."""
    if call.kind not in ("read", "write"):
        return False
    named = [
        posixpath.normpath(text)
        for name, text in call.arguments.items()
        if isinstance(text, str)
        and re.search(r"path|file|uri", name.lower())
        and "/" in text
        and "text" not in name.lower()
    ]
    return bool(named) and all(
        f"{path}/".startswith(_SCRATCH)
        and not any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)
        for path in named
    )
