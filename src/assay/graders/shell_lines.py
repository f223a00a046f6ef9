"""Read a shell line for what its words mean: quotes gone, variables and globs followed.

Only for judging traces, where a line has long been run. It is read generously: what it may have
named counts as named. It cannot follow what a program would compute.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product, takewhile

from assay.graders.globs import LIVE, as_written

DEEPEST = 6
"""How many lines may be inside of each other, such as ``$(...)`` and ``bash -c``."""

_SIGNS_A_STEP = 16
_A_COMMAND = 20
_A_WORD = 5
_A_HEREDOC = 100
_ENDS = ";&|\n()"
_NAME = re.compile(r"[A-Za-z_]\w*")
_GIVEN_A_LINE = ("script", "flock", "su")
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")
_QUOTED_BRACE = "\ue004"
_PLAIN = re.compile(r"[^ \t\n;&|()<>\\'\"$`*?\[\]#]+")
_PLAIN_IN_QUOTES = re.compile(r'[^"\\$`]+')
_REDIRECTION = re.compile(r"<<<|<<-?|<&|<>|<|>>|>\||>&|>")
_PARENTHESES, _BACKTICK = re.compile(r"[()]"), re.compile("`")
_OPERATOR = re.compile(r"&&|\|\||;;|[;&|\n()]")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_PARAMETERS = frozenset("0123456789@*#?$!-")
_RUNS_TEXT = re.compile(r"(?:ba|da|z|k)?sh|(?:python|pypy|perl|ruby|node|php|deno|bun|lua)[\d.]*")


class TooMuch(Exception):  # noqa: N818 - it is no error of anybody's
    """A line takes more steps than one is read for."""


class Steps:
    """What is left to be done for a line and all that is inside of it: about a microsecond each."""

    most = 250_000

    def __init__(self) -> None:
        self.left = self.most

    def take(self, count: int = 1, *, signs: int = 0) -> None:
        """Take some, and some more for so many signs."""
        count += signs // _SIGNS_A_STEP
        if count > self.left:
            raise TooMuch
        self.left -= count


@dataclass(slots=True)
class Simple:
    """One simple command."""

    words: list[str] = field(default_factory=list[str])
    into: list[str] = field(default_factory=list[str])
    out_of: list[str] = field(default_factory=list[str])
    before: list[str] = field(default_factory=list[str])
    # Directory that it runs in, as far as ``cd`` tells; empty for where the line began.
    cwd: str = ""
    # Whether the line comes to it; None where that hangs on what others do.
    runs: bool | None = True
    inner: list[str] = field(default_factory=list[str])
    fed: str | None = None
    is_piped: bool = False
    is_open: bool = False
    is_known: bool = False
    is_rest: bool = False

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
        if self.program == "trap":
            return "".join(args[:1])
        if self.program not in (*_SHELLS, *_GIVEN_A_LINE):
            args = [] if self.program in _PRINTERS else _of_shell(args)
            if not args:
                return None
        for number, word in enumerate(args):
            if not word.startswith(("-", "+")):
                break
            if re.fullmatch(r"-\w*n\w*", word):
                return ""  # nothing is run
            if re.fullmatch(r"-\w*c", word):
                return "".join(args[number + 1 : number + 2])
        return self.fed if self.program in _SHELLS and self._reads_input else None

    @property
    def _reads_input(self) -> bool:
        args = self.words[1:]
        return "-s" in args or all(w == "/dev/stdin" or w.startswith("-") for w in args)

    @property
    def is_unread(self) -> bool:
        """Whether it is a shell whose lines another program makes, or the rest of a line."""
        if self.is_rest:
            return True
        is_shell = self.program in _SHELLS and self._reads_input
        return is_shell and self.is_piped and self.code is None

    @property
    def output(self) -> str | None:
        """What it prints; None where that is not known."""
        args = [as_written(word) for word in self.words[1:]]
        prints = None if self.is_open else _PRINTERS.get(self.program)
        return None if prints is None else prints(args, None if self.out_of else self.fed)

    @property
    def places(self) -> list[str]:
        """Where it finds what it prints, which nobody knows; as far as its words tell."""
        words = self.words[1:]
        plain = [word for word in words if not word.startswith("-")]
        if self.program == "find":
            plain = list(takewhile(lambda word: not word.startswith("-"), words))
        elif self.program in ("grep", "egrep", "fgrep", "rg", "ag") and "-e" not in words:
            del plain[:1]
        return [word for word in plain if posixpath.normpath(word) != "."]

    def path(self, word: str) -> str:
        """A word as a path from where the line began."""
        return posixpath.join(self.cwd, word) if self.cwd else word


def _of_shell(words: list[str]) -> list[str]:
    """The words of a shell that another program starts with a line: ``docker run x sh -c LINE``."""
    for at, word in enumerate(words[:-2], 1):
        if re.fullmatch(r"-\w*c", words[at]) and as_written(word).rpartition("/")[2] in _SHELLS:
            return words[at:]
    return []


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


def without_remarks(line: str) -> str:
    """A line without its comments, and without texts in it that no program runs."""
    reader = Reader(line, Steps(), lambda _: None)
    try:
        for _ in reader.commands():
            pass
    except TooMuch:
        return ""
    kept, at = "", 0
    for start, end in sorted(reader.passed_over):
        kept += line[at:start]
        at = max(at, end)
    return kept + line[at:]


class Reader:
    """Reads one line, a sign or a run of plain ones after the other.

    ``printed_by``: Tells what a line inside of it prints; None where that is not known.
    """

    def __init__(
        self, line: str, steps: Steps, printed_by: Callable[[str], str | None], depth: int = 0
    ) -> None:
        self.passed_over: list[tuple[int, int]] = []
        self._steps = steps
        self._printed_by = printed_by
        self._depth = depth
        self._assigned: list[tuple[int, int]] = []
        self._begun: int = 0
        self._inner: list[str] = []
        self._is_open = False
        self._line = line
        self._at: int = 0
        self._values: dict[str, list[str]] = {"PWD": ["."]}
        self._word: list[str] | None = None
        self._tail: list[str] = []
        self._heredocs: list[tuple[str, Simple]] = []
        self._ended = Simple()

    def commands(self) -> Iterator[Simple]:
        """Its simple commands as they stand there, one after the other."""
        waiting: list[Simple] = []
        for command in self._commands():
            waiting.append(command)
            if not self._heredocs:  # what it is fed is read by now
                yield from waiting
                waiting.clear()
        yield from waiting

    def _commands(self) -> Iterator[Simple]:
        command, target = Simple(), ""
        while self._at < len(self._line):
            self._steps.take()
            sign = self._line[self._at]
            if sign in " \t" or sign in _ENDS or sign in "<>" or self._begins_comment(sign):
                before = self._at
                target = self._finish(command, target)
                if self._at != before:  # past an array
                    continue
            if sign in "<>" and self._line[self._at + 1 : self._at + 2] != "(":
                target = self._redirection()
            elif sign in _ENDS:
                self._end(command)
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
        self._end(command)
        if command.words or command.into or command.out_of or command.inner or command.before:
            yield command

    def _end(self, command: Simple) -> None:
        """End a command: what is only assigned is done by none."""
        self._steps.take(_A_COMMAND)
        if not command.words:
            self.passed_over += self._assigned
        self._assigned = []
        if command.words[:1] == ["for"] and command.words[2:3] == ["in"]:
            self._values[command.words[1]] = command.words[3:]
        elif "read" in command.words[:3] and command.before[-1:] == ["|"]:
            self._values[command.words[-1]] = self._ended.places
        self._ended = command

    def _begins_comment(self, sign: str) -> bool:
        return sign == "#" and self._word is None

    def _finish(self, command: Simple, target: str) -> str:
        """End a word; returns what the next one is the target of."""
        if self._word is None:
            return target
        words = [form for word in self._joined() for form in self._braced(word)]
        self._steps.take(_A_WORD * len(words))
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
            if assigned and (not command.words or command.words[0] in _DECLARES):
                is_array = not assigned[2] and self._line[self._at : self._at + 1] == "("
                given = self._array() if is_array else [w.partition("=")[2] for w in words]
                name, more, _ = assigned[0].partition("+=")
                before = self._values.get(name, [""])[-1:] if more and not is_array else [""]
                self._values[assigned[1]] = ["".join([*before, *given[:1]]), *given[1:]]
                if not command.words:
                    self._assigned.append((self._begun, self._at))
                    return ""
            command.words += words
        return ""

    def _redirection(self) -> str:
        match = _REDIRECTION.match(self._line, self._at)
        assert match
        self._at = match.end()
        if match[0].startswith("<<") and match[0] != "<<<":
            return "<<"
        if match[0] in ("<&", ">&") and self._line[self._at : self._at + 1].isdigit():
            return "&"
        return {"<<<": "<<<"}.get(match[0], ">" if ">" in match[0] else "<")

    def _operator(self) -> str:
        match = _OPERATOR.match(self._line, self._at)
        assert match
        self._at = match.end()
        if match[0] == "\n":
            for end, command in self._heredocs:
                self._heredoc(end, command)
            self._heredocs = []
        return match[0]

    def _heredoc(self, end: str, command: Simple) -> None:
        match = re.compile(rf"^\t*{re.escape(end)}$", re.MULTILINE).search(self._line, self._at)
        stop = match.start() if match else len(self._line)
        self._steps.take(_A_HEREDOC, signs=stop - self._at)
        if match is None:
            return
        command.fed = self._line[self._at : stop]
        if not _RUNS_TEXT.fullmatch(command.program):
            self.passed_over.append((self._at, stop))
        self._at = match.end()

    def _part(self, sign: str) -> None:
        """Take one more part of a word."""
        line, at = self._line, self._at
        if self._word is None:
            self._word, self._begun = [""], at
        if plain := _PLAIN.match(line, at):
            self._add(plain[0])
            self._at = plain.end()
        elif sign == "\\":
            self._add(_quoted(line[at + 1 : at + 2].replace("\n", "")))
            self._at += 2
        elif sign == "'" or line.startswith("$'", at):
            begin = at + (1 if sign == "'" else 2)
            end = line.find("'", begin)
            end = len(line) if end < 0 else end
            text = line[begin:end]
            self._add(_quoted(text if sign == "'" else _escapes(text)))
            self._at = end + 1
        elif sign == '"':
            self._quoted()
        elif sign in "$`<>":
            self._expansion()
        else:
            self._add(LIVE.get(sign, sign))
            self._at += 1

    def _quoted(self) -> None:
        line = self._line
        self._at += 1
        while self._at < len(line) and (sign := line[self._at]) != '"':
            self._steps.take()
            if sign == "\\":
                self._add(_quoted(line[self._at + 1 : self._at + 2]))
                self._at += 2
            elif plain := _PLAIN_IN_QUOTES.match(line, self._at):
                self._add(_quoted(plain[0]))
                self._at = plain.end()
            else:
                self._expansion()
        self._at += 1

    def _expansion(self) -> None:
        line, at = self._line, self._at
        if line[at] == "`" or line[at + 1 : at + 2] == "(":
            opening = "`" if line[at] == "`" else "("
            begin = at + (1 if opening == "`" else 2)
            end = self._closing(begin, opening)
            inner = line[begin:end].strip()
            self._inner.append(inner)
            known = self._printed_by(inner)
            self._is_open |= known is None
            self._add("" if known is None else _quoted(known.rstrip("\n")))
            self._at = end + 1
        elif line[at + 1 : at + 2] == "{":
            end = line.find("}", at)
            end = len(line) if end < 0 else end
            self._steps.take(signs=end - at)
            inside = line[at + 2 : end]
            name = _NAME.match(inside)
            default = re.search(r":?[-=+](.*)", inside, re.DOTALL)
            known = self._values.get(name[0] if name else "", [])
            self._is_open |= not known
            self._add(*map(_quoted, known or [default[1] if default else ""]))
            self._at = end + 1
        else:
            if line[at] == "$" and line[at + 1 : at + 2] in _PARAMETERS:
                self._is_open = True
                self._add("")
                self._at += 2
                return
            name = _NAME.match(line, at + 1)
            self._is_open |= name is not None and not self._values.get(name[0])
            known = self._values.get(name[0]) or [""] if name else [line[at]]
            self._add(*map(_quoted, known))
            self._at = name.end() if name else at + 1

    def _array(self) -> list[str]:
        """The words between the parentheses that begin here."""
        if self._depth >= DEEPEST:
            raise TooMuch
        end = self._closing(self._at + 1, "(")
        inside = self._line[self._at + 1 : end].replace("\n", " ")
        self._at = end + 1
        reader = Reader(inside, self._steps, self._printed_by, self._depth + 1)
        return [_quoted(word) for one in reader.commands() for word in one.words]

    def _closing(self, at: int, opening: str) -> int:
        """Where ends what began before here."""
        end, depth = len(self._line), 1
        for match in (_PARENTHESES if opening == "(" else _BACKTICK).finditer(self._line, at):
            depth += 1 if match[0] == "(" else -1
            if not depth:
                end = match.start()
                break
        self._steps.take(signs=end - at)
        return end

    def _add(self, *forms: str) -> None:
        """Add a part to the word that is being read; it may be one of several."""
        if len(forms) == 1:
            self._steps.take(signs=len(forms[0]))
            self._tail.append(forms[0])
            return
        begun = self._joined()
        longest = max(map(len, begun)) + max(map(len, forms))
        self._steps.take(len(begun) * len(forms), signs=len(begun) * len(forms) * longest)
        self._word = [before + form for before, form in product(begun, forms)]

    def _joined(self) -> list[str]:
        """The forms of the word so far."""
        begun, tail = self._word or [""], "".join(self._tail)
        self._tail = []
        if not tail:
            return begun
        longest = max(map(len, begun)) + len(tail)
        self._steps.take(len(begun), signs=len(begun) * longest)
        return [before + tail for before in begun]

    def _braced(self, word: str) -> list[str]:
        """A word with its braces expanded, where no quote makes them plain."""
        done, forms = list[str](), [word]
        while forms:
            form = forms.pop()
            match = _BRACES.search(form)
            if match is None:
                done.append(form.replace(_QUOTED_BRACE, "{"))
                continue
            choices = match[1].split(",")
            self._steps.take(len(choices), signs=len(choices) * len(form))
            before, after = form[: match.start()], form[match.end() :]
            forms += [before + choice + after for choice in reversed(choices)]
        return done


def _quoted(text: str) -> str:
    return text.replace("{", _QUOTED_BRACE)


def _escapes(text: str) -> str:
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return text
