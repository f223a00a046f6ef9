"""Follow a shell line as a shell does, as far as constants tell: what it comes to, and where."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from assay.graders.conditions import all_of, opposite
from assay.graders.globs import as_written, overlap
from assay.graders.shell_lines import DEEPEST, Reader, Simple, Steps, TooMuch

_DEEPEST_BLOCK = 100
_AN_EVENT = 20
_A_WORD = 5
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_WRAPPERS: Mapping[str, str] = {
    **dict.fromkeys(("builtin", "command", "nohup", "setsid", "time", "coproc", "busybox"), ""),
    "doas": "uC",
    "unbuffer": "",
    "env": "uC",
    "exec": "a",
    "ionice": "cnp",
    "nice": "n",
    "parallel": "jINnS",
    "stdbuf": "ioe",
    "sudo": "ugpCDhRT",
    "timeout": "sk",
    "watch": "n",
    "xargs": "nIiLPsdEa",
}
"""Programs that start another one, and their options with a value."""


def simple_commands(line: str) -> Iterator[Simple]:
    """Every simple command of a line, also those inside of others.

    What takes too many steps is left, and one that `is_rest` stands for it.
    """
    try:
        yield from _commands(line, Steps(), 0, "")
    except TooMuch:
        yield Simple(is_known=True, is_rest=True)


def _commands(line: str, steps: Steps, depth: int, cwd: str) -> Iterator[Simple]:
    if depth > DEEPEST:
        raise TooMuch
    for command in _Flow(cwd, steps).read(line):
        code = command.code
        for inner in (*command.inner, *([as_written(code)] if code else [])):
            for within in _commands(inner, steps, depth + 1, command.cwd):
                within.runs = all_of((within.runs, command.runs))
                yield within
        yield command


def _unwrapped(words: Sequence[str], cwd: str) -> tuple[list[str], str]:
    """Words without the programs that only start another one, and where that one works."""
    at, last = 0, len(words) - 1
    while at < last:
        program = words[at].rpartition("/")[2]
        if program == "command" and words[at + 1] in ("-v", "-V"):
            return ["type", *words[at + 2 :]], cwd
        if program in _WRAPPERS:
            options = _WRAPPERS[program]
            at += 1
            while at <= last and words[at].startswith("-"):
                has_value = words[at][-1] in options and len(words[at]) == 2
                if program == "env" and words[at][:2] == "-C":
                    value = words[at][2:] or "".join(words[at + 1 : at + 2])
                    cwd = posixpath.normpath(posixpath.join(cwd, value))
                at += 2 if has_value else 1
            while at <= last and re.fullmatch(r"[\d.]+[smhd]?", words[at]):
                at += 1
        elif _ASSIGNMENT.fullmatch(words[at]):
            at += 1
        else:
            break
    return list(words[at:]), cwd


_RESERVED = frozenset(
    {"!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac"}
)
_LOOPS = ("while", "until", "for")
_CLOSED = {"}": ("{",), ")": ("(",), "fi": ("if",), "done": _LOOPS, "esac": ("case",)}
"""What ends what."""
_SUCCEED = frozenset({":", "true", "echo", "printf", "pwd", "sleep", "date", "export", "declare"})


@dataclass(slots=True)
class _Block:
    """A part of a line that is run or not as a whole."""

    opener: str
    alive: bool | None
    here: bool | None
    cwd: str
    rest: bool | None = None
    comes: bool | None = True
    status: bool | None = True
    passed: bool = False
    is_condition: bool = False
    negated: bool = False
    # What ``case`` looks at, where that is known; else None.
    subject: str | None = None
    patterns: list[str] = field(default_factory=list[str])
    start: int = 0


_Event = tuple[str, "str | Simple"]


class _Flow:
    """Follows a line as a shell does, as far as constants tell: what it comes to, and where.

    ``true`` succeeds, ``false`` fails, ``exit`` ends, a function runs where it is called. What
    other programs do is not known, and so either way is open.
    """

    def __init__(self, cwd: str, steps: Steps, depth: int = 0) -> None:
        self._depth = depth
        self._steps = steps
        self._cwd = cwd
        self._blocks = [_Block("", alive=True, here=True, cwd=cwd)]
        self._functions: dict[str, Sequence[_Event]] = {}
        self._defines = ""
        self._stops_at_failure = False
        self._played: list[_Event] = []
        self._before: Simple | None = None

    def read(self, line: str) -> Iterator[Simple]:
        """The simple commands of a line; those inside of their words are left in them."""
        reader = Reader(line, self._steps, self._printed_by, self._depth)
        for event in _events(reader.commands()):
            yield from self._play(event)

    def _printed_by(self, line: str) -> str | None:
        """What a line prints, where it is one command of constants."""
        if self._depth >= DEEPEST:
            return None
        *_, last = [None, *_Flow("", self._steps, self._depth + 1).read(line)]
        return None if last is None else last.output

    def _play(self, event: _Event) -> Iterator[Simple]:
        kind, what = event
        if isinstance(what, Simple):
            yield from self._command(replace(what, words=list(what.words)))
        elif kind == "define":
            self._defines = what
        elif kind == "operator":
            self._operator(what)
        else:
            self._word(what)
        self._played.append(event)

    @property
    def _top(self) -> _Block:
        return self._blocks[-1]

    @property
    def _now(self) -> bool | None:
        return all_of((self._top.here, self._top.comes))

    def _operator(self, sign: str) -> None:
        top = self._top
        if top.opener == "case" and top.is_condition and sign in "(|)":
            if sign == ")":
                self._branch(top)
        elif sign == "(":
            self._open("(")
        elif sign == ")":
            self._close(sign)
        elif sign == "&&":
            top.comes, top.passed = top.status, False
        elif sign == "||":
            top.comes, top.passed = opposite(top.status), True
        elif sign != "|":
            fails = top.status is False and not any(block.is_condition for block in self._blocks)
            if self._stops_at_failure and fails and self._now is True:
                self._end("(")
            top.comes = True
            if sign == ";;" and top.opener == "case":
                top.is_condition, top.patterns = True, []

    def _branch(self, case: _Block) -> None:
        """Begin a branch of ``case``."""
        fits: bool | None = None
        if case.subject is not None:
            self._steps.take(signs=len(case.subject) * sum(map(len, case.patterns)))
            fits = any(overlap(p, case.subject) for p in case.patterns)
        case.here, case.rest = all_of((case.rest, fits)), all_of((case.rest, opposite(fits)))
        case.is_condition, case.comes = False, True

    def _word(self, word: str) -> None:
        top = self._top
        if word == "!":
            top.negated = not top.negated
        elif word in ("if", "while", "until"):
            self._open(word).is_condition = True
        elif word == "{":
            self._open(word)
        elif word in _CLOSED:
            self._close(word)
        elif top.opener == "if":
            if word == "then":
                top.here, top.rest = all_of((top.alive, top.status)), opposite(top.status)
            else:
                top.here = top.alive = all_of((top.alive, top.rest))
            top.is_condition, top.comes, top.status = word == "elif", True, True
        elif word == "do" and top.opener in _LOOPS:
            goes = opposite(top.status) if top.opener == "until" else top.status
            top.here, top.is_condition, top.comes = all_of((top.alive, goes)), False, True

    def _open(self, opener: str) -> _Block:
        if len(self._blocks) > _DEEPEST_BLOCK:
            raise TooMuch
        now = self._now
        if self._defines and opener in "({":
            now = False  # until it is called
        start = len(self._played) + 1
        block = _Block(opener, alive=now, here=now, cwd=self._cwd, start=start)
        if self._defines and opener in "({":
            block.subject, self._defines = self._defines, ""
        self._blocks.append(block)
        return block

    def _close(self, closer: str) -> None:
        openers = _CLOSED[closer]
        if not any(block.opener in openers for block in self._blocks):
            return
        while self._top.opener not in openers:
            self._blocks.pop()
        block = self._blocks.pop()
        if block.opener == "(":
            self._cwd = block.cwd
        if block.opener in "({" and block.subject:
            self._functions[block.subject] = self._played[block.start :]
        elif block.alive is not False:
            self._ran(block.status if block.opener in "({" else None)

    def _ran(self, status: bool | None) -> None:  # noqa: FBT001
        top = self._top
        status = opposite(status) if top.negated else status
        top.negated = False
        is_sure = top.comes is True or status is top.passed
        top.status = status if is_sure else None

    def _end(self, opener: str) -> None:
        """Nothing more is run of the innermost such block, or of the line."""
        for block in reversed(self._blocks):
            block.here = block.alive = block.rest = False
            if block.opener == opener or (opener == "loop" and block.opener in _LOOPS):
                return

    def _command(self, command: Simple) -> Iterator[Simple]:
        top, now = self._top, self._now
        words, command.cwd = _unwrapped(command.words, self._cwd)
        starter, command.words = "".join(command.words[:1]).rpartition("/")[2], words
        command.runs = now
        self._steps.take(0, signs=len(command.cwd))
        before = self._before if command.before[-1:] == ["|"] else None
        if before is not None and command.fed is None:
            command.fed, command.is_piped = before.output, True
            self._steps.take(len(before.words), signs=len(command.fed or ""))
        if starter == "xargs" and before is not None:
            passed = before.places if command.fed is None else command.fed.split()
            self._steps.take(_A_WORD * len(passed))
            command.words += passed
        self._before = command
        if top.opener == "case" and top.is_condition:
            command.is_known = True
            top.patterns += words
        elif command.program in ("for", "select", "case"):
            self._begin(command.program, command)
        elif now is not False and command.program in self._functions:
            command.is_known = True
            yield command
            yield from self._call(command.program)
            return
        elif now is not False:
            self._run(command, is_exec=starter == "exec" and command.words[:1] != ["exec"])
        yield command

    def _run(self, command: Simple, *, is_exec: bool) -> None:
        """Take in what a command does to those after it."""
        program, args = command.program, command.words[1:]
        flags = "".join(word[1:].partition("o")[0] for word in args if word[:1] == "-")
        if program in ("cd", "pushd") and args:
            self._cwd = posixpath.normpath(posixpath.join(self._cwd, args[-1]))
        elif program == "set":
            self._stops_at_failure |= "e" in flags or "errexit" in args
        self._ran(_status(command))
        if command.runs is not True:
            return
        if program == "exit" or is_exec:
            self._top.status = args[:1] in ([], ["0"])
            self._end("(")
        elif program == "set" and ("n" in flags or "noexec" in args):
            self._end("")
        elif program == "return" and self._is_in("call"):
            self._end("call")
        elif program in ("break", "continue") and self._is_in(*_LOOPS):
            self._end("loop")

    def _is_in(self, *openers: str) -> bool:
        return any(block.opener in openers for block in self._blocks)

    def _begin(self, program: str, command: Simple) -> None:
        """Begin a ``for`` or ``case``."""
        words, command.is_known = command.words, True
        block = self._open("case" if program == "case" else "for")
        if program == "case":
            block.rest, block.is_condition = block.alive, True
            block.subject = None if command.is_open else "".join(words[1:2])
            block.patterns = words[3:]
        else:
            listed = len(words) > 3 or words[2:3] != ["in"]
            block.status = None if command.is_open else listed

    def _call(self, name: str) -> Iterator[Simple]:
        """Do what a function does, once where it calls itself."""
        depth = len(self._blocks)
        if any(block.opener == "call" and block.subject == name for block in self._blocks):
            self._ran(None)
            return
        block = self._open("call")
        block.subject = name
        played, self._played = self._played, []
        for event in self._functions[name]:
            self._steps.take(_AN_EVENT)
            yield from self._play(event)
        self._played = played
        del self._blocks[depth:]
        self._ran(block.status)


def _grammar(command: Simple) -> Iterator[_Event]:
    """The words of the grammar before a command, which are taken off it."""
    count = next((n for n, w in enumerate(command.words) if w not in _RESERVED), None)
    first, command.words = command.words[:count], command.words[len(command.words[:count]) :]
    yield from (("word", word) for word in first)


def _events(commands: Iterable[Simple]) -> Iterator[_Event]:
    """Operators, words of the grammar and simple commands, in order."""
    last: Simple | None = None
    try:
        for command in commands:
            if last is not None:
                yield from _parts(last, command.before)
                if command.before[:2] == ["(", ")"]:
                    command.before = command.before[2:]
            last = command
    except TooMuch:
        if last is not None:
            yield from _parts(last, [])
        raise
    if last is not None:
        yield from _parts(last, [])


def _parts(command: Simple, following: list[str]) -> Iterator[_Event]:
    yield from (("operator", sign) for sign in command.before)
    yield from _grammar(command)
    if command.words[:1] == ["function"]:
        yield ("define", "".join(command.words[1:2]))
        command.words = command.words[2:]
        yield from _grammar(command)
    if following[:2] == ["(", ")"] and len(command.words) < 2:
        if command.words:
            yield ("define", command.words[0])
    elif command.words or command.into or command.out_of or command.inner:
        yield ("command", command)


def _status(command: Simple) -> bool | None:
    """Whether a command succeeds, where that is the same every time."""
    program, args = command.program, [as_written(word) for word in command.words[1:]]
    if not program or program in _SUCCEED:
        return None if command.inner and not program else True
    if program == "false":
        return False
    if program in ("test", "[", "[[") and not command.is_open:
        args = [word for word in args if word not in ("]", "]]")]
        is_negated = args[:1] == ["!"] and len(args) > 1
        found = _compared(args[1:] if is_negated else args)
        return opposite(found) if is_negated else found
    return None


def _compared(args: Sequence[str]) -> bool | None:
    """What a test of constants says."""
    holds = {"-eq": (0,), "-ne": (1, -1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}
    if len(args) < 2:
        return bool("".join(args))
    if len(args) == 2 and args[0] in ("-n", "-z"):
        return (args[0] == "-n") is bool(args[1])
    if len(args) != 3:
        return None
    left, sign, right = args
    if sign in ("=", "==", "!="):
        return (left == right) is (sign != "!=")
    numbers = [int(word) for word in (left, right) if re.fullmatch(r"-?\d{1,18}", word)]
    if len(numbers) < 2 or sign not in holds:
        return None
    order = (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
    return order in holds[sign]
