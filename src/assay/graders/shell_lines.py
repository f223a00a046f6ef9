"""Read a shell line for what its words mean: quotes gone, variables and globs followed.

Only for judging traces, where a line has long been run. It is read generously: what it may have
named counts as named. It cannot follow what a program would compute.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from assay.graders.globs import LIVE, as_written, overlap

__all__ = ["Simple", "simple_commands", "without_remarks"]

_MOST_FORMS = 32
_MOST_COMMANDS = 20_000
_MOST_CALLS = 100
_MOST_PRINTED = 100
_DEEPEST_BLOCK = 100
_LONGEST_INNER = 2_000
_DEEPEST = 4
_ENDS = ";&|\n()"
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_WRAPPERS: Mapping[str, str] = {
    **dict.fromkeys(("builtin", "command", "nohup", "setsid", "time", "coproc"), ""),
    "env": "uC",
    "exec": "a",
    "ionice": "cnp",
    "nice": "n",
    "stdbuf": "ioe",
    "sudo": "ugpCDhRT",
    "timeout": "sk",
    "xargs": "nIiLPsdEa",
}
"""Programs that start another one, and their options with a value."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_PARAMETERS = frozenset("0123456789@*#?$!-")
_RUNS_TEXT = re.compile(r"(?:ba|da|z|k)?sh|(?:python|pypy|perl|ruby|node|php|deno|bun|lua)[\d.]*")


@dataclass(slots=True)
class Simple:
    """One simple command.

    Attributes:
        words: Its words, wrappers such as ``env`` and ``timeout 60`` left out.
        into: Files that its output goes to.
        out_of: Files that its input comes from.
        before: The operators before it.
        cwd: Directory that it runs in, as far as ``cd`` tells; empty for where the line began.
        runs: Whether the line comes to it; None where that hangs on what others do.
        inner: Lines in it that are run to make its words.
        fed: What it reads as its input; None where that is not known.
        is_piped: Whether another command writes its input.
        is_open: Whether a word hangs on what is not known.
        is_known: Whether it is a function's name or a part of the grammar, and does nothing itself.
    """

    words: list[str] = field(default_factory=list[str])
    into: list[str] = field(default_factory=list[str])
    out_of: list[str] = field(default_factory=list[str])
    before: list[str] = field(default_factory=list[str])
    cwd: str = ""
    runs: bool | None = True
    inner: list[str] = field(default_factory=list[str])
    fed: str | None = None
    is_piped: bool = False
    is_open: bool = False
    is_known: bool = False

    @property
    def program(self) -> str:
        """The name of its program; empty where it has none."""
        return as_written(self.words[0]).rpartition("/")[2] if self.words else ""

    @property
    def code(self) -> str | None:
        """The line that it is a shell for; None for what is no shell, or where that is not told."""
        args = self.words[1:]
        if self.program == "eval":
            return " ".join(args)
        if self.program not in _SHELLS:
            return None
        for number, word in enumerate(args):
            if not word.startswith(("-", "+")):
                break
            if re.fullmatch(r"-\w*n\w*", word):
                return ""  # nothing is run
            if re.fullmatch(r"-\w*c", word):
                return "".join(args[number + 1 : number + 2])
        return self.fed if self._reads_input else None

    @property
    def _reads_input(self) -> bool:
        args = self.words[1:]
        return "-s" in args or all(w == "/dev/stdin" or w.startswith("-") for w in args)

    @property
    def is_unread(self) -> bool:
        """Whether it is a shell whose lines another program makes."""
        is_shell = self.program in _SHELLS and self._reads_input
        return is_shell and self.is_piped and self.code is None

    @property
    def output(self) -> str | None:
        """What it prints; None where that is not known."""
        args = [as_written(word) for word in self.words[1:]]
        prints = None if self.is_open else _PRINTERS.get(self.program)
        return None if prints is None else prints(args, None if self.out_of else self.fed)

    def path(self, word: str) -> str:
        """A word as a path from where the line began."""
        return posixpath.join(self.cwd, word) if self.cwd else word


def _echo(args: list[str], fed: str | None) -> str:
    del fed
    while args and re.fullmatch(r"-[neE]+", args[0]):
        args = args[1:]
    return " ".join(args) + "\n"


def _printf(args: list[str], fed: str | None) -> str | None:
    del fed
    form = "".join(args[:1])
    if form.replace("\\n", "") in ("%s", "%b"):
        return "\n".join(args[1:]) + "\n"
    return None if "%" in form else _escapes(form)


def _decoded(args: list[str], fed: str | None) -> str | None:
    if fed is None or args[:1] not in (["-d"], ["-D"], ["--decode"]):
        return None
    try:
        return base64.b64decode(fed).decode("utf-8", "replace")
    except ValueError:
        return None


_PRINTERS: Mapping[str, Callable[[list[str], str | None], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "base64": _decoded,
    "cat": lambda args, fed: fed if args in ([], ["-"]) else None,
    "rev": lambda args, fed: None if args or fed is None else fed.rstrip("\n")[::-1],
    "pwd": lambda args, fed: ".",  # noqa: ARG005
}
"""What programs print of constants."""


def simple_commands(line: str, *, depth: int = 0, cwd: str = "") -> Iterator[Simple]:
    """Every simple command of a line, also those inside of others."""
    if depth > _DEEPEST:
        return
    for command in _Flow(cwd).read(line):
        lines = [*command.inner]
        code = command.code
        if code:
            lines.append(as_written(code))
        for inner in lines:
            for within in simple_commands(inner, depth=depth + 1, cwd=command.cwd):
                within.runs = _both(within.runs, command.runs)
                yield within
        yield command


def without_remarks(line: str) -> str:
    """A line without its comments, and without texts in it that no program runs."""
    reader = _Reader(line)
    for _ in reader.commands():
        pass
    for start, end in sorted(reader.passed_over, reverse=True):
        line = line[:start] + line[end:]
    return line


def _unwrapped(words: list[str], cwd: str) -> tuple[list[str], str]:
    """Words without the programs that only start another one, and where that one works."""
    left = list(words)
    while len(left) > 1:
        program = left[0].rpartition("/")[2]
        if _ASSIGNMENT.fullmatch(left[0]):
            left = left[1:]
        elif program == "command" and left[1] in ("-v", "-V"):
            return ["type", *left[2:]], cwd
        elif program in _WRAPPERS:
            options = _WRAPPERS[program]
            left = left[1:]
            while left and left[0].startswith("-"):
                has_value = left[0][-1] in options and len(left[0]) == 2
                if program == "env" and left[0][:2] == "-C":
                    value = left[0][2:] or "".join(left[1:2])
                    cwd = posixpath.normpath(posixpath.join(cwd, value))
                left = left[2:] if has_value else left[1:]
            while left and re.fullmatch(r"[\d.]+[smhd]?", left[0]):
                left = left[1:]
        else:
            return left, cwd
    return left, cwd


class _Reader:
    """Reads one line, a character after the other."""

    def __init__(self, line: str, depth: int = 0) -> None:
        self.passed_over: list[tuple[int, int]] = []
        self._depth = depth
        self._printed = 0
        self._assigned: list[tuple[int, int]] = []
        self._begun = 0
        self._inner: list[str] = []
        self._is_open = False
        self._line = line
        self._at = 0
        self._values: dict[str, list[str]] = {"PWD": ["."]}
        self._word: list[str] | None = None
        self._heredocs: list[tuple[str, Simple]] = []

    def commands(self) -> Iterator[Simple]:
        command, target = Simple(), ""
        while self._at < len(self._line):
            sign = self._line[self._at]
            if sign in " \t" or sign in _ENDS or sign in "<>" or self._begins_comment(sign):
                before = self._at
                target = self._finish(command, target)
                if self._at != before:  # past an array
                    continue
            if sign in "<>" and self._line[self._at + 1 : self._at + 2] != "(":
                target = self._redirection()
            elif sign in _ENDS:
                self._pass_over(command)
                operator = self._operator()
                if command.words or command.into or command.out_of or command.inner:
                    yield command
                    command = Simple(before=[operator])
                else:
                    command.before.append(operator)
                target = ""
            elif self._begins_comment(sign):
                end = self._line.find("\n", self._at)
                end = len(self._line) if end < 0 else end
                self.passed_over.append((self._at, end))
                self._at = end
            elif sign in " \t":
                self._at += 1
            else:
                self._part(sign)
        self._finish(command, target)
        self._pass_over(command)
        if command.words or command.into or command.out_of or command.inner or command.before:
            yield command

    def _pass_over(self, command: Simple) -> None:
        """What is only assigned is done by no command."""
        if not command.words:
            self.passed_over += self._assigned
        self._assigned = []

    def _begins_comment(self, sign: str) -> bool:
        return sign == "#" and self._word is None

    def _finish(self, command: Simple, target: str) -> str:
        """End a word; returns what the next one is the target of."""
        if self._word is None:
            return target
        words = [form for word in self._word for form in _braced(word)][:_MOST_FORMS]
        self._word = None
        command.inner += self._inner
        command.is_open |= self._is_open
        self._inner, self._is_open = [], False
        if target == "<<":
            self._heredocs += [(end, command) for end in words[:1]]
        elif target == "<<<":
            command.fed = "".join(words[:1]) + "\n"
        elif target == ">":
            command.into += words
        elif target == "<":
            command.out_of += words
        elif not target:
            assigned = _ASSIGNMENT.fullmatch(words[0]) if words else None
            if assigned and not command.words:
                is_array = not assigned[2] and self._line[self._at : self._at + 1] == "("
                given = self._array() if is_array else [w.partition("=")[2] for w in words]
                self._values[assigned[1]] = given
                self._assigned.append((self._begun, self._at))
                return ""
            command.words += words
            if command.words[:1] == ["for"] and command.words[2:3] == ["in"]:
                self._values[command.words[1]] = command.words[3:]
        return ""

    def _redirection(self) -> str:
        match = re.compile(r"<<<|<<-?|<&|<>|<|>>|>\||>&|>").match(self._line, self._at)
        assert match
        self._at = match.end()
        if match[0].startswith("<<") and match[0] != "<<<":
            return "<<"
        if match[0] in ("<&", ">&") and self._line[self._at : self._at + 1].isdigit():
            return "&"
        return {"<<<": "<<<"}.get(match[0], ">" if ">" in match[0] else "<")

    def _operator(self) -> str:
        match = re.compile(r"&&|\|\||;;|[;&|\n()]").match(self._line, self._at)
        assert match
        self._at = match.end()
        if match[0] == "\n":
            for end, command in self._heredocs:
                self._heredoc(end, command)
            self._heredocs = []
        return match[0]

    def _heredoc(self, end: str, command: Simple) -> None:
        body = re.compile(rf"(.*?)^\t*{re.escape(end)}$", re.DOTALL | re.MULTILINE)
        match = body.match(self._line, self._at)
        if match is None:
            return
        command.fed = match[1]
        if not _RUNS_TEXT.fullmatch(command.program):
            self.passed_over.append(match.span(1))
        self._at = match.end()

    def _part(self, sign: str) -> None:
        """Take one more part of a word."""
        line, at = self._line, self._at
        if self._word is None:
            self._word, self._begun = [""], at
        if sign == "\\":
            self._add(line[at + 1 : at + 2].replace("\n", ""))
            self._at += 2
        elif sign == "'" or line.startswith("$'", at):
            begin = at + (1 if sign == "'" else 2)
            end = line.find("'", begin)
            end = len(line) if end < 0 else end
            text = line[begin:end]
            self._add(text if sign == "'" else _escapes(text))
            self._at = end + 1
        elif sign == '"':
            self._quoted()
        elif sign in "$`<>":
            self._expansion()
        else:
            self._add(LIVE.get(sign, sign))
            self._at += 1

    def _quoted(self) -> None:
        self._at += 1
        while self._at < len(self._line) and (sign := self._line[self._at]) != '"':
            if sign == "\\":
                self._add(self._line[self._at + 1 : self._at + 2])
                self._at += 2
            elif sign in "$`":
                self._expansion()
            else:
                self._add(sign)
                self._at += 1
        self._at += 1

    def _expansion(self) -> None:
        line, at = self._line, self._at
        if line[at] == "`" or line[at + 1 : at + 2] == "(":
            opening = "`" if line[at] == "`" else "("
            begin = at + (1 if opening == "`" else 2)
            end = _closing(line, begin, opening)
            inner = line[begin:end].strip()
            self._inner.append(inner)
            known = self._printed_by(inner)
            self._is_open |= known is None
            self._add("" if known is None else known.rstrip("\n"))
            self._at = end + 1
        elif line[at + 1 : at + 2] == "{":
            end = line.find("}", at)
            end = len(line) if end < 0 else end
            inside = line[at + 2 : end]
            name = _NAME.match(inside)
            default = re.search(r":?[-=+](.*)", inside, re.DOTALL)
            known = self._values.get(name[0] if name else "", [])
            self._is_open |= not known
            self._add(*(known or [default[1] if default else ""]))
            self._at = end + 1
        else:
            if line[at] == "$" and line[at + 1 : at + 2] in _PARAMETERS:
                self._is_open = True
                self._add("")
                self._at += 2
                return
            name = _NAME.match(line, at + 1)
            self._is_open |= name is not None and not self._values.get(name[0])
            self._add(*(self._values.get(name[0]) or [""] if name else [line[at]]))
            self._at = name.end() if name else at + 1

    def _printed_by(self, line: str) -> str | None:
        """What a line prints, where it is one command of constants."""
        self._printed += 1
        if self._depth >= _DEEPEST or len(line) > _LONGEST_INNER or self._printed > _MOST_PRINTED:
            return None
        *_, last = [None, *_Flow("", self._depth + 1).read(line)]
        return None if last is None else last.output

    def _array(self) -> list[str]:
        """The words between the parentheses that begin here."""
        end = _closing(self._line, self._at + 1, "(")
        inside = self._line[self._at + 1 : end].replace("\n", " ")
        self._at = end + 1
        if self._depth >= _DEEPEST:
            return []
        return [w for one in _Reader(inside, self._depth + 1).commands() for w in one.words]

    def _add(self, *forms: str) -> None:
        pairs = product(self._word or [""], forms)
        self._word = [before + form for before, form in islice(pairs, _MOST_FORMS)]


def _both(first: bool | None, second: bool | None) -> bool | None:  # noqa: FBT001
    """Whether two things hold; None where that is not known."""
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def _not(value: bool | None) -> bool | None:  # noqa: FBT001
    return None if value is None else not value


_RESERVED = frozenset(
    {"!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac"}
)
_LOOPS = ("while", "until", "for")
_SUCCEED = frozenset({":", "true", "echo", "printf", "pwd", "sleep", "date", "export", "declare"})


@dataclass(slots=True)
class _Block:
    """A part of a line that is run or not as a whole.

    Attributes:
        opener: The word that it began with.
        alive: Whether the line comes to it.
        here: Whether the line comes to the branch of it that is being read.
        rest: Whether it comes to its further branches.
        comes: Whether it comes to the next command, after ``&&`` and ``||``.
        status: Whether the last command succeeded.
        passed: What `status` is where the next command is left out.
        is_condition: Whether its condition is being read, or a pattern of ``case``.
        negated: Whether ``!`` stands before the next command.
        subject: What ``case`` looks at, where that is known; else None.
        patterns: Those of the branch of ``case`` that begins.
        cwd: Where it began.
        start: The first event of a function's body.
    """

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
    subject: str | None = None
    patterns: list[str] = field(default_factory=list[str])
    start: int = 0


_Event = tuple[str, "str | Simple"]


class _Flow:
    """Follows a line as a shell does, as far as constants tell: what it comes to, and where.

    ``true`` succeeds, ``false`` fails, ``exit`` ends, a function runs where it is called. What
    other programs do is not known, and so either way is open.
    """

    def __init__(self, cwd: str, depth: int = 0) -> None:
        self._depth = depth
        self._cwd = cwd
        self._blocks = [_Block("", alive=True, here=True, cwd=cwd)]
        self._functions: dict[str, Sequence[_Event]] = {}
        self._defines = ""
        self._stops_at_failure = False
        self._found: list[Simple] = []
        self._calls = 0

    def read(self, line: str) -> list[Simple]:
        """The simple commands of a line; those inside of their words are left in them."""
        self._play(list(_events(list(_Reader(line, self._depth).commands()))))
        return self._found

    def _play(self, events: Sequence[_Event]) -> None:
        for number, (kind, what) in enumerate(events):
            if isinstance(what, Simple):
                self._command(replace(what, words=list(what.words)))
            elif kind == "define":
                self._defines = what
            elif kind == "operator":
                self._operator(what, events, number)
            else:
                self._word(what, events, number)

    @property
    def _top(self) -> _Block:
        return self._blocks[-1]

    @property
    def _now(self) -> bool | None:
        return _both(self._top.here, self._top.comes)

    def _operator(self, sign: str, events: Sequence[_Event], number: int) -> None:
        top = self._top
        if top.opener == "case" and top.is_condition and sign in "(|)":
            if sign == ")":
                self._branch(top)
        elif sign == "(":
            self._open("(", number + 1)
        elif sign == ")":
            self._close(("(",), events, number)
        elif sign == "&&":
            top.comes, top.passed = top.status, False
        elif sign == "||":
            top.comes, top.passed = _not(top.status), True
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
            fits = any(overlap(p, case.subject) for p in case.patterns)
        case.here, case.rest = _both(case.rest, fits), _both(case.rest, _not(fits))
        case.is_condition, case.comes = False, True

    def _word(self, word: str, events: Sequence[_Event], number: int) -> None:
        top = self._top
        if word == "!":
            top.negated = not top.negated
        elif word in ("if", "while", "until"):
            self._open(word, number + 1).is_condition = True
        elif word == "{":
            self._open(word, number + 1)
        elif word in ("}", "fi", "done", "esac"):
            ends = {"}": ("{",), "fi": ("if",), "done": _LOOPS, "esac": ("case",)}[word]
            self._close(ends, events, number)
        elif top.opener == "if":
            if word == "then":
                top.here, top.rest = _both(top.alive, top.status), _not(top.status)
            else:
                top.here = top.alive = _both(top.alive, top.rest)
            top.is_condition, top.comes, top.status = word == "elif", True, True
        elif word == "do" and top.opener in _LOOPS:
            goes = _not(top.status) if top.opener == "until" else top.status
            top.here, top.is_condition, top.comes = _both(top.alive, goes), False, True

    def _open(self, opener: str, start: int) -> _Block:
        now = self._now if len(self._blocks) < _DEEPEST_BLOCK else None
        if self._defines and opener in "({":
            now = False  # until it is called
        block = _Block(opener, alive=now, here=now, cwd=self._cwd, start=start)
        if self._defines and opener in "({":
            block.subject, self._defines = self._defines, ""
        self._blocks.append(block)
        return block

    def _close(self, openers: Sequence[str], events: Sequence[_Event], number: int) -> None:
        at = next((n for n, b in enumerate(self._blocks) if n and b.opener in openers), 0)
        while at and self._top.opener not in openers:
            self._blocks.pop()
        if not at:
            return
        block = self._blocks.pop()
        if block.opener == "(":
            self._cwd = block.cwd
        if block.opener in "({" and block.subject:
            self._functions[block.subject] = events[block.start : number]
        elif block.alive is not False:
            self._ran(block.status if block.opener in "({" else None)

    def _ran(self, status: bool | None) -> None:  # noqa: FBT001
        top = self._top
        status = _not(status) if top.negated else status
        top.negated = False
        is_sure = top.comes is True or status is top.passed
        top.status = status if is_sure else None

    def _end(self, opener: str) -> None:
        """Nothing more is run of the innermost such block, or of the line."""
        for block in reversed(self._blocks):
            block.here = block.alive = block.rest = False
            if block.opener == opener or (opener == "loop" and block.opener in _LOOPS):
                return

    def _command(self, command: Simple) -> None:
        top, now = self._top, self._now
        words, command.cwd = _unwrapped(command.words, self._cwd)
        starter, command.words = "".join(command.words[:1]).rpartition("/")[2], words
        command.runs = now
        before = self._found[-1] if self._found and command.before[-1:] == ["|"] else None
        if before is not None and command.fed is None:
            command.fed, command.is_piped = before.output, True
        if starter == "xargs" and before is not None:
            command.words += _passed_on(before, command.fed)
        if len(self._found) < _MOST_COMMANDS:
            self._found.append(command)
        if top.opener == "case" and top.is_condition:
            command.is_known, top.patterns = True, [*top.patterns, *words]
        elif command.program in ("for", "select", "case"):
            self._begin(command.program, command)
        elif now is not False and command.program in self._functions:
            self._call(self._functions[command.program], command)
        elif now is not False:
            self._run(command, is_exec=starter == "exec" and command.words[:1] != ["exec"])

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
        block = self._open("case" if program == "case" else "for", 0)
        if program == "case":
            block.rest, block.is_condition = block.alive, True
            block.subject = None if command.is_open else "".join(words[1:2])
            block.patterns = words[3:]
        else:
            listed = len(words) > 3 or words[2:3] != ["in"]
            block.status = None if command.is_open else listed

    def _call(self, body: Sequence[_Event], command: Simple) -> None:
        command.is_known = True
        self._calls += 1
        block = self._open("call", 0)
        depth = len(self._blocks)
        if depth < _DEEPEST * _DEEPEST and self._calls < _MOST_CALLS:
            self._play(body)
        del self._blocks[depth - 1 :]
        self._ran(block.status)


def _grammar(command: Simple) -> Iterator[_Event]:
    """The words of the grammar before a command, which are taken off it."""
    count = next((n for n, w in enumerate(command.words) if w not in _RESERVED), None)
    first, command.words = command.words[:count], command.words[len(command.words[:count]) :]
    yield from (("word", word) for word in first)


def _events(commands: Sequence[Simple]) -> Iterator[_Event]:
    """Operators, words of the grammar and simple commands, in order."""
    for number, command in enumerate(commands):
        before = command.before
        if before[:2] == ["(", ")"] and number:
            before = before[2:]
        yield from (("operator", sign) for sign in before)
        yield from _grammar(command)
        if command.words[:1] == ["function"]:
            yield ("define", "".join(command.words[1:2]))
            command.words = command.words[2:]
            yield from _grammar(command)
        following = commands[number + 1].before[:2] if number + 1 < len(commands) else []
        if following == ["(", ")"] and len(command.words) < 2:
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
        return _not(found) if is_negated else found
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


def _passed_on(before: Simple, fed: str | None) -> list[str]:
    """The words that ``xargs`` gets: what is printed, or the places where they are looked for."""
    if fed is not None:
        return fed.split()
    if before.program not in ("find", "fd", "ls"):
        return []
    places: list[str] = []
    for word in before.words[1:]:
        if word.startswith("-"):
            break
        places.append(word)
    return [word for word in places if posixpath.normpath(word) != "."]


def _closing(line: str, at: int, opening: str) -> int:
    if opening == "`":
        end = line.find("`", at)
        return len(line) if end < 0 else end
    depth = 1
    while at < len(line):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if not depth:
            return at
        at += 1
    return at


def _braced(word: str) -> list[str]:
    """A word with its braces expanded."""
    forms = [word]
    for _ in range(_DEEPEST):
        if not any(_BRACES.search(form) for form in forms) or len(forms) > _MOST_FORMS:
            break
        forms = [
            form[: match.start()] + choice + form[match.end() :] if match else form
            for form in forms
            for match in [_BRACES.search(form)]
            for choice in (match[1].split(",") if match else [""])
        ]
    return forms[:_MOST_FORMS]


def _escapes(text: str) -> str:
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return text
