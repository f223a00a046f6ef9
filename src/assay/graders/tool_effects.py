"""What a tool call does, by its name and its input: for bans generously, for demands strictly."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast, get_args

from assay.graders.python_effects import only_reads, only_states_constants
from assay.graders.shell_flow import simple_commands
from assay.graders.shell_lines import Simple, without_remarks
from assay.scoring.json_safe import Json
from assay.text.normal_form import as_text
from assay.types.trace import ToolCall, ToolKind

_VERBS: Mapping[str, str] = {
    "write": "write edit create delete remove rm move mv rename append patch apply put upload "
    "update insert replace save set modify touch mkdir copy cp truncate commit overwrite push",
    "read": "read get view cat open load show head tail peek",
    "execute": "exec execute run shell bash sh terminal command cmd eval python invoke spawn",
    "search": "search grep find query glob list ls lookup",
    "fetch": "fetch http https url browse browser download web request navigate curl crawl scrape",
}
_KIND_OF_VERB = {verb: kind for kind, verbs in _VERBS.items() for verb in verbs.split()}
_IN_NAMES: Mapping[str, str] = {
    "harmless": "todo todos think thinking plan ask finish task",
    "last": "submit finish done complete completion answer final respond end exit stop terminate",
    "of the run": "task work job run result results solution patch response report output "
    "conversation chat session attempt mark and as to the my user with is",
    "code": "python ipython jupyter notebook code interpreter cell",
}
"""Words in names of tools, by what they tell of them."""
_NAMED = {what: frozenset(words.split()) for what, words in _IN_NAMES.items()}
_HANDED_ON = re.compile(r"(?:transfer|hand_?off|escalate)(?:_to_\w+)?|transferto\w+")
_LINES = ("command", "cmd", "script", "commands", "shell_command", "line")
_DOING: Mapping[str, str] = {
    "write": "rm rmdir unlink shred mv touch mkdir truncate tee patch chmod chown ln ed ex vi "
    "vim nano rename fallocate chattr setfacl mkfifo mknod mktemp",
    "read": "cat head tail less more tac nl od xxd hexdump strings base64 base32 sort uniq cut "
    "wc awk gawk diff cmp comm jq view bat zcat tar zip gzip source . paste fold rev md5sum "
    "sha1sum sha256sum ln mv ed ex vi vim nano",
    "script": "grep egrep fgrep rg ag ack sed gsed perl",
    "copy": "cp install rsync scp split",
    "fetch": "curl wget ftp sftp ssh scp nc ncat telnet aria2c lynx w3m http https socat svn "
    "gh npx dig nslookup ping",
    "search": "find fd grep egrep rg ag ack ls tree locate",
    "find": "find fd fdfind",
    "look": "cat head tail wc ls file stat diff grep sed",
    "idle": ": true false echo printf sleep cd pushd popd test [ ] basename dirname expr "
    "logger yes declare local hash [[ ]] man info whatis whereis apropos help kill exit "
    "return exec wait export set unset type which alias umask clear history pwd date whoami "
    "hostname id uname let trap seq read tty break continue command builtin fi done esac for "
    "case in",
}
"""Programs by what they do; those of `script` are given one, or a pattern, before their files."""
_PROGRAMS = {what: frozenset(programs.split()) for what, programs in _DOING.items()}
_INSTALLERS: Mapping[str, str] = {
    "pip pip3 npm pnpm yarn cargo go uv poetry gem apt apt-get apk yum dnf brew conda mamba": "add "
    "ci download get i install sync update upgrade",
    "git": "clone fetch ls-remote pull push submodule",
    "docker podman": "pull push",
}
"""Programs that fetch, and the words that ask for it."""
_INTERPRETERS = re.compile(r"(?:python|pypy|perl|ruby|node|php|deno|bun|lua|tclsh)[\d.]*")
_SED_WRITES = re.compile(r"(?:^|[\s;/}\d$])w\s+([^\s;}]+)")
_ACTS = frozenset({"-delete", "-fprint", "-fprint0", "-fprintf", "-fls"})
_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_MOST_STARTED = 9
_GIT_WRITES = frozenset(
    {"checkout", "restore", "rm", "mv", "apply", "clean", "reset", "switch", "stash"}
)
_GIT_READS = frozenset({"diff", "show", "grep", "blame", "cat-file", "log"})
_DRY: Mapping[str, str] = {
    "pytest py.test": "-h -V --collect-only --co --fixtures --markers --setup-plan",
    "python python3 pypy pypy3": "-V -VV -h",
    "node deno bun": "-v -h --check",
    "make gmake ninja": "-n -v -h --dry-run --just-print --recon -q --question",
    "bash sh dash zsh ksh": "-n",
    "npm npx pnpm yarn": "-v -h --dry-run",
    "jest vitest mocha": "-v -h --listTests --dry-run --list-tests list",
    "cargo": "-V -h --list --no-run --dry-run",
    "go": "-n -list -h help version",
    "mvn gradle ctest": "-v -h -m -N --dry-run --show-only",
}
"""Options by which a program only says what it is, or what it would do."""
_WORD_OF_CODE = re.compile(r"[^\s;(){}<>'\"`=,:]+")
_OPTIONS: Mapping[str, str] = {
    "curl": "into:-o into:--output into:-D into:-c under:--output-dir from:-T",
    "wget": "into:-O into:--output-document into:-o into:-a under:-P under:--directory-prefix",
    "aria2c": "into:-o under:-d under:--dir",
    "tar bsdtar": "in:-C in:--directory",
    "unzip": "under:-d",
    "7z 7za 7zr": "under:-o",
    "cp mv ln install": "under:-t under:--target-directory",
    "patch": "in:-d in:--directory into:-o into:--output",
    "git": "in:-C in:--work-tree under:--directory into:--output",
    "make gmake ninja go cargo npm pnpm yarn uv": "in:-C in:--directory in:--prefix in:--cwd",
    "cpio": "in:-D in:--directory",
    "mktemp": "under:-p under:--tmpdir",
    "pip pip3": "under:-t under:--target",
    "sort shuf iconv pandoc xmllint": "into:-o into:--output",
    "cc gcc g++ c++ clang clang++ ld as rustc": "into:-o",
    "openssl": "into:-out",
    "javac": "under:-d",
}
"""Options that name a file which is written, a directory below which that happens, or where the
program works."""
_FORMATTERS: Mapping[str, str] = {
    "black isort rustfmt dos2unix unix2dos sponge": "always",
    "autopep8 yapf clang-format": "-i --in-place",
    "gofmt goimports": "-w",
    "prettier": "-w --write",
    "eslint": "--fix",
    "ruff": "format --fix",
    "awk gawk": "inplace",
    "yq": "-i --inplace",
    "ruby": "-i -pi -i.bak -pi.bak",
}
"""Programs that change the files that they are given, and the options that ask for it."""
_ONLY_LOOKS = frozenset({"--check", "--diff", "--check-only", "-c", "-l", "-d"})
_READ, _WRITE, _SEEN = frozenset({"read"}), frozenset({"write"}), frozenset[str]()
_BOTH = _READ | _WRITE
_ANYTHING = frozenset({"read", "write", "search", "fetch"})
_ABOUT_ITSELF = frozenset({"--version", "-V", "--help", "-h"})
_NOTHING = ("/dev/", "/proc/", "/sys/")
_SCRATCH = (*_NOTHING, "/tmp/", "/var/tmp/")  # noqa: S108 - words of a trace
_OLD = frozenset({"old_string", "old_str", "old_text", "old", "search"})
_NEW = frozenset({"new_string", "new_str", "new_text", "new", "replace"})
_CONTENT = frozenset({"content", "contents", "text", "file_text", "data", "new_source", *_NEW})
_CHANGED = _OLD | _CONTENT
_TEXTS = frozenset({name.replace("_", "") for name in _CHANGED} | {"code", "codeedit", "diff"})
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:(?:Add|Update|Delete) File|Move to): |rename to |(?:\+\+\+|---) (?:[ab]/)?)"
    r"([^\t\n]+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Touch:
    """A path that a command names, and what it does there."""

    # The path; signs of a glob that the shell expands are those of `assay.graders.globs.LIVE`.
    path: str
    kinds: frozenset[str]
    deep: bool = False


def as_asked(call: ToolCall) -> ToolCall:
    """A call with the kind of work that was asked for: an editor that only shows a file reads."""
    given = call.arguments
    if call.kind == "write" and given.get("command") == "view" and not given.keys() & _CHANGED:
        return replace(call, kind="read")
    return call


def possible_kinds(call: ToolCall, *, is_told: bool = True) -> frozenset[str]:
    """The kinds of work that a tool may do: where its name tells nothing, by what it is given.

    ``is_told``: Whether it is known what it is given; without that it may be of any kind.
    """
    if call.kind not in (None, "other"):
        return frozenset({call.kind})
    name = call.raw_name or call.name
    own = _kinds_named(name.rpartition("__")[2]) or _kinds_named(name)
    words = _name_words(name)
    if words & _NAMED["harmless"] and not (own and name.startswith("mcp")):
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
    if named & {"url", "uri", "host", "address"} or any(
        "://" in text for text in texts_in(arguments, names=True)
    ):
        found.add("fetch")
    return frozenset(found)


def texts_in(value: Json | Mapping[str, Json], *, names: bool = False) -> Iterator[str]:
    """Every text in the input of a call, however deep; also the ``names`` of its fields."""
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            fields = cast("Mapping[str, Json]", one)
            waiting.extend([*fields, *fields.values()] if names else fields.values())
        elif isinstance(one, list):
            waiting.extend(cast("list[Json]", one))


def patched(text: str) -> Iterator[str]:
    """The paths that a patch names, where a text is one."""
    return (found[1].strip() for found in _PATCHED.finditer(text))


def paths_of(call: ToolCall) -> Iterator[str]:
    """What a demand takes for the paths of a read or write: no text of it, but those of a patch."""
    waiting: list[tuple[str, object]] = [("", call.arguments)]
    is_patch = bool(_name_words(call.name) & {"patch", "diff"})
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, str):
            if is_patch:
                yield from patched(one)
            if name not in _TEXTS:
                yield one
        elif isinstance(one, Mapping):
            fields = cast("Mapping[str, Json]", one).items()
            waiting += [(re.sub(r"[\W_]", "", key.lower()), value) for key, value in fields]
        elif isinstance(one, list):
            waiting += [(name, value) for value in cast("list[Json]", one)]


def _kinds_named(name: str) -> frozenset[str]:
    return frozenset(_KIND_OF_VERB[word] for word in _name_words(name) if word in _KIND_OF_VERB)


def _name_words(name: str) -> frozenset[str]:
    spread = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[a-z]+", spread.lower()))


def ends_run(call: ToolCall) -> bool:
    """Whether a call hands in the work, or hands it on: nobody is left to hear its result.

    What it ends is the run: to `complete_order` or to `transfer_funds` is work.
    """
    name = re.split(r"__|[./:]", call.raw_name or call.name)[-1]
    words = _name_words(name)
    last = _NAMED["last"]
    is_last = bool(words & last) and words <= last | _NAMED["of the run"]
    return is_last or _HANDED_ON.fullmatch(name.lower()) is not None


def command_line(arguments: Mapping[str, Json]) -> str:
    """The shell line among a call's arguments; empty where there is none."""
    for name in _LINES:
        given = arguments.get(name)
        if isinstance(given, str):
            return given
        if isinstance(given, list) and given:
            # What is a list or an object there is of any depth.
            words = [
                " ".join(texts_in(word)) if isinstance(word, dict | list) else as_text(word)
                for word in given
            ]
            return words[-1] if len(words) > 2 and words[1].endswith("c") else " ".join(words)
    return ""


def line_of(call: ToolCall) -> str:
    """The shell line that a call comes to, to a ban: code is what its interpreter is given."""
    if line := command_line(call.arguments):
        return line
    is_code = gives_code(call)
    texts = [text for text in call.arguments.values() if isinstance(text, str)]
    return "\n".join(f"python3 -c {shlex.quote(text)}" if is_code else text for text in texts)


def gives_code(call: ToolCall) -> bool:
    """Whether a tool is for code, and not for a line of a shell."""
    return bool(_name_words(call.raw_name or call.name) & _NAMED["code"]) and not command_line(
        call.arguments
    )


def touches(line: str) -> Iterator[Touch]:
    """The paths that a shell line names, and what it does there; fetching touches ``""``."""
    for each in simple_commands(line):
        command, told = _without_options(each)
        yield from told
        if command.is_unread:  # of what cannot be read nobody knows what it leaves alone
            yield Touch(".", _ANYTHING, deep=True)
        for path in command.into:
            if not path.startswith(_NOTHING):
                yield Touch(command.path(path), _WRITE)
        for path in command.out_of:
            yield Touch(command.path(path), _READ)
        kinds = _kinds_of_program(command)
        if kinds:
            yield Touch("", kinds)
        for word, done in _operands(command):
            path = command.path(word)
            # What a recursive reader passes over on its way is not what was banned.
            deep = "write" in done or posixpath.normpath(word) not in (".", "/workspace", "/")
            yield Touch(path, done, deep=deep and bool(done))


def _kinds_of_program(command: Simple) -> frozenset[str]:
    found = set[str]()
    program, args = _run_as(command)
    asks = {*_words_for(program, _INSTALLERS)}
    asked = [word for word in args if not word.startswith("-")][:2]
    if asked[:1] not in (["run"], ["test"]) and asks.intersection(asked):
        found.add("fetch")
    code = _code_of(program, args, args[:1], command.fed) or ""
    calls_out = "://" in code and not only_reads(code)
    opens = any(path.startswith("/dev/tcp/") for path in (*command.into, *command.out_of))
    if program in _PROGRAMS["fetch"] or opens or calls_out:
        found.add("fetch")
    if program in _PROGRAMS["search"]:
        found.add("search")
    return frozenset(found)


def _words_for(program: str, table: Mapping[str, str]) -> list[str]:
    """What a table of ours has for a program; its keys are names of several."""
    return next((words for names, words in table.items() if program in names.split()), "").split()


def _operands(command: Simple) -> Iterator[tuple[str, frozenset[str]]]:
    """The words of a command that may be paths, and what is done to each."""
    program, args = _run_as(command)
    options = [word for word in args if word.startswith("-") and word != "-"]
    plain = [word for word in args if not word.startswith("-") or word == "-"]
    if _writes_around(program, plain, options) and posixpath.normpath(command.cwd) != ".":
        yield ".", _WRITE
    if program in _PROGRAMS["copy"]:
        yield from ((word, _READ) for word in plain[:-1])
        yield from ((word, _WRITE) for word in plain[-1:])
    elif program in _PROGRAMS["script"]:
        yield from _of_script(program, args, options, plain)
    elif program == "dd":
        yield from ((word[3:], _WRITE) for word in args if word.startswith("of="))
        yield from ((word[3:], _READ) for word in args if word.startswith("if="))
    elif program in _PROGRAMS["find"]:
        done = _BOTH if _acts(args) else _SEEN
        yield from ((word, done) for word in plain)
    elif program == "git":
        verb = next(iter(plain), "")
        done = _WRITE if verb in _GIT_WRITES else _READ if verb in _GIT_READS else _SEEN
        yield from ((word, done) for word in plain[1:] if word not in (".", "./"))
    elif _formats(program, args):
        yield from ((word, _BOTH) for word in plain if posixpath.normpath(word) != ".")
    elif (code := _code_of(program, args, options, command.fed)) is not None:
        done = _READ if program.startswith(("python", "pypy")) and only_reads(code) else _BOTH
        yield from ((word, done) for word in _WORD_OF_CODE.findall(code))
    else:
        done = frozenset(kind for kind in _BOTH if program in _PROGRAMS[kind])
        yield from ((word, done) for word in plain)
        if program in ("awk", "gawk", "mawk") and ">" in "".join(plain[:1]):
            yield from ((word, _WRITE) for word in _WORD_OF_CODE.findall(plain[0]))


def _of_script(
    program: str, args: Sequence[str], options: Sequence[str], plain: Sequence[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """The operands of what is given a pattern or a script, and what that names."""
    in_place = program in ("sed", "gsed", "perl") and any(
        re.match(r"-[a-zE]*i|--i", word) for word in options
    )
    listed = plain if any(word in ("-e", "-f") for word in options) else plain[1:]
    yield from ((word, _BOTH if in_place else _READ) for word in listed)
    if program in ("sed", "gsed"):
        yield from ((word, _WRITE) for word in _SED_WRITES.findall("".join(plain[:1])))
    if program == "perl" and (code := _code_of(program, args, options, None)) is not None:
        yield from ((word, _BOTH) for word in _WORD_OF_CODE.findall(code))


def _acts(args: Sequence[str]) -> bool:
    """Whether what is found is changed, for all that is known of the programs that get it."""
    started = [number + 1 for number, word in enumerate(args) if word in _STARTS]
    if _ACTS & set(args) or len(started) > _MOST_STARTED:
        return True
    runs = [Simple(words=[*args[at:]]) for at in started]
    return any(
        run.program not in _PROGRAMS["look"] or any("write" in done for _, done in _operands(run))
        for run in runs
    )


def _without_options(command: Simple) -> tuple[Simple, list[Touch]]:
    """A command without its options that name places, where it works then, and what they touch."""
    program, args = _run_as(command)
    table = [one.partition(":") for one in _words_for(program, _OPTIONS)]
    roles = {name: role for role, _, name in table}
    left, told, cwd = list[str](), list[Touch](), command.cwd
    waiting = iter(args)
    for word in waiting if roles else ():
        name, value = _option(word, roles)
        if not name:
            left.append(word)
            continue
        if word[:1] == "-" and word[:2] != "--":
            left += [word[: word.find(name[1:2], 1)]][: len(word) > 2 and len(name) == 2]
        place = next(waiting, "") if value is None else value
        role = roles[name]
        path = posixpath.join(cwd, place) if cwd else place
        if role == "in":
            cwd = posixpath.normpath(path)
        if place and place != "-" and not place.startswith(_NOTHING):
            kinds = {"into": {"write"}, "under": {"write"}, "from": {"read"}}.get(role, set[str]())
            told.append(Touch(path, frozenset(kinds), deep=role == "under"))
    if not told:
        return command, []
    return replace(command, words=[program, *left], cwd=cwd), told


def _option(word: str, roles: Mapping[str, str]) -> tuple[str, str | None]:
    """Which option a word is, and its value where that is in it: ``-so``, ``-oFILE``, ``--a=b``."""
    name, sign, value = word.partition("=")
    if name in roles:
        return name, value if sign else None
    if word[:1] == "-" and word[:2] != "--":
        for short in roles:
            at = word.find(short[1], 1) if len(short) == 2 else -1
            if at > 0:
                return short, word[at + 1 :] or None
    return "", None


def _writes_around(program: str, plain: Sequence[str], options: Sequence[str]) -> bool:
    """Whether a program writes files that its words do not name, below where it works."""
    first = "".join(plain[:1])
    if program in ("tar", "bsdtar"):
        letters = [w for w in options if re.fullmatch(r"-\w+", w)] or [first]
        return "--extract" in options or any("x" in word for word in letters)
    if program == "git":
        is_bare = len(plain) < 2 or set(plain[1:]) & {".", "./"}
        return first in ("apply", "am", "stash") or bool(first in _GIT_WRITES and is_bare)
    return program in ("patch", "unzip", "7z", "7za", "7zr", "cpio")


def _formats(program: str, args: Sequence[str]) -> bool:
    """Whether a program changes the files that it is given, as it is asked here."""
    asked = _words_for(program, _FORMATTERS)
    return bool({"always", *args}.intersection(asked)) and not _ONLY_LOOKS.intersection(args)


def _code_of(
    program: str, args: Sequence[str], options: Sequence[str], fed: str | None
) -> str | None:
    """The code that an interpreter is given, in a word or as its input."""
    if not _INTERPRETERS.fullmatch(program):
        return None
    if options[:1] and options[0][-1:] in "cer":
        return "".join(args[args.index(options[0]) + 1 :][:1])
    return fed if all(word == "-" for word in args) else None


def does_nothing(call: ToolCall) -> bool:
    """Whether a call that ran is none for all that it was asked to do."""
    arguments = call.arguments
    if call.kind == "execute":
        line = command_line(arguments)
        if line or any(name in arguments for name in _LINES):
            return not any(map(_works, _commands(line)))
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


def undone_edits(calls: Sequence[ToolCall]) -> frozenset[int]:
    """Identities of the edits that a later one of the same file takes back, and of these."""
    standing: dict[str, list[tuple[int, list[tuple[Json, Json]]]]] = {}
    undone: set[int] = set()
    for call in calls:
        path = _edited_path(call.arguments) if call.kind == "write" else ""
        if not path:
            continue
        before = standing.setdefault(path, [])
        changes = _changes(call.arguments)
        is_undo = call.arguments.get("command") == "undo_edit"
        back = [(new, old) for old, new in reversed(changes)]
        if before and (is_undo or (changes and before[-1][1] == back)):
            undone |= {before.pop()[0], id(call)}
        elif not is_undo:
            before.append((id(call), changes))
    return frozenset(undone)


def _edited_path(arguments: Mapping[str, Json]) -> str:
    named = (text for name, text in arguments.items() if re.search(r"path|file$", name.lower()))
    return next((posixpath.normpath(text) for text in named if isinstance(text, str) and text), "")


def _changes(arguments: Mapping[str, Json]) -> list[tuple[Json, Json]]:
    """The texts that an edit replaces, each with the new one; none where it is no such edit."""
    edits = arguments.get("edits")
    each = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    found: list[tuple[Json, Json]] = []
    for edit in each or [arguments]:
        old = [text for name, text in edit.items() if name in _OLD]
        new = [text for name, text in edit.items() if name in _NEW]
        if len(old) != 1 or len(new) != 1:
            return []
        found.append((old[0], new[0]))
    return found


@lru_cache(maxsize=64)
def _commands(line: str) -> tuple[Simple, ...]:
    return tuple(simple_commands(line))


def works_at(line: str, fits: Callable[[str], bool]) -> bool:
    """Whether a line is what is demanded, by what it does and not only by what it says."""
    idle: list[str] = []
    for command in _commands(line):
        said = " ".join(command.words)
        if not _works(command):
            idle.append(said)
        elif fits(said) or (command.cwd and fits(f"cd {command.cwd} && {said}")):
            return True
    is_read = not any(command.is_rest for command in _commands(line))
    return is_read and fits(without_remarks(line)) and not any(map(fits, idle))


def _works(command: Simple) -> bool:
    return command.runs is not False and not _is_idle(command)


def _is_idle(command: Simple) -> bool:
    if any(not path.startswith(_SCRATCH) for path in command.into):
        return False
    program, args = _run_as(command)
    is_idle = not program or program in _PROGRAMS["idle"]
    if command.is_known or is_idle or _tells_of_itself(program, args):
        return True
    named = [word for word in args if not word.startswith("-")]
    if program in ("grep", "egrep", "fgrep", "sed", "rg"):
        named = named[1:] or ["."][: command.fed is None]
    if program in _PROGRAMS["read"] | _PROGRAMS["script"]:
        sources = [*named, *command.out_of]
        return all(word.startswith(_NOTHING) or word.isdigit() for word in sources)
    if program in ("touch", "mkdir", "tee", "rm"):
        return all(word.startswith(_SCRATCH) for word in named)
    if _INTERPRETERS.fullmatch(program):
        code = "".join(args[1:2]) if args[:1] in (["-c"], ["-e"]) else command.fed
        return code is not None and bool(args[:1] != [] or code) and _is_idle_code(program, code)
    # What a shell is given as a line is looked at by itself.
    return command.code is not None or program == "eval"


def _run_as(command: Simple) -> tuple[str, list[str]]:
    """The program that does the work, and its words: ``python -m pytest`` is pytest."""
    program, args = command.program, command.words[1:]
    if _INTERPRETERS.fullmatch(program) and "-m" in args[:-1]:
        at = args.index("-m")
        if all(word.startswith("-") for word in args[:at]):
            return args[at + 1], args[at + 2 :]
    return program, args


def _tells_of_itself(program: str, args: Sequence[str]) -> bool:
    """Whether a program is only asked what it is, or what it would do."""
    if args and set(args) <= _ABOUT_ITSELF:
        return True
    own = _words_for(program, _DRY)
    for number, word in enumerate(args):
        if word == "--":
            break
        following = "".join(args[number + 1 : number + 2])
        if word in own or (word in ("--help", "--version") and not re.match(r"v?\d", following)):
            return True
    return False


def _is_idle_code(program: str, code: str) -> bool:
    """Whether code of a language only states constants."""
    if code.strip(" ;\n") in ("", "pass", "...", "None", "0", "1"):
        return True
    return program.startswith(("python", "pypy")) and only_states_constants(code)


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
