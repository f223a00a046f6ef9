"""Read a shell line for what its words mean: quotes gone, variables and globs followed.

Only for judging traces, where a line has long been run. It is read generously: what it may have
named counts as named. It cannot follow what a program would compute.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product

__all__ = ["LIVE", "Simple", "overlap", "simple_commands"]

LIVE = {"*": "\ue000", "?": "\ue001", "[": "\ue002", "]": "\ue003"}
"""Signs of a glob, as they stand in a word where no quote makes them plain."""

_MOST_FORMS = 32
_DEEPEST = 4
_ENDS = ";&|\n()"
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_RESERVED = frozenset(
    {"!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "time"}
)
_WRAPPERS = frozenset(
    {"env", "sudo", "nohup", "nice", "timeout", "exec", "command", "builtin", "stdbuf", "xargs"}
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})


@dataclass(slots=True)
class Simple:
    """One simple command.

    Attributes:
        words: Its words, wrappers such as ``env`` and ``timeout 60`` left out.
        into: Files that its output goes to.
        out_of: Files that its input comes from.
        before: The operator before it.
        cwd: Directory that it runs in, as far as ``cd`` tells; empty for where the line began.
    """

    words: list[str] = field(default_factory=list[str])
    into: list[str] = field(default_factory=list[str])
    out_of: list[str] = field(default_factory=list[str])
    before: str = ""
    cwd: str = ""

    @property
    def program(self) -> str:
        """The name of its program; empty where it has none."""
        return self.words[0].rpartition("/")[2] if self.words else ""

    def path(self, word: str) -> str:
        """A word as a path from where the line began."""
        return posixpath.join(self.cwd, word) if self.cwd else word


def simple_commands(line: str, *, depth: int = 0, cwd: str = "") -> Iterator[Simple]:
    """Every simple command of a line, also those inside of others."""
    if depth > _DEEPEST:
        return
    reader = _Reader(line)
    for command in reader.commands():
        command.words = _unwrapped(command.words)
        command.cwd = cwd
        program, args = command.program, command.words[1:]
        if program in ("cd", "pushd") and args:
            cwd = posixpath.normpath(posixpath.join(cwd, args[-1]))
        inner = " ".join(args) if program == "eval" else ""
        if program in _SHELLS:
            inner = next((args[n + 1] for n, w in enumerate(args[:-1]) if _is_code(w)), "")
        if inner:
            plain = inner.translate({ord(live): sign for sign, live in LIVE.items()})
            yield from simple_commands(plain, depth=depth + 1, cwd=command.cwd)
        yield command
    for inner in reader.nested:
        yield from simple_commands(inner, depth=depth + 1, cwd=cwd)


def _is_code(word: str) -> bool:
    return re.fullmatch(r"-\w*c", word) is not None


def _unwrapped(words: list[str]) -> list[str]:
    left = list(words)
    while left:
        program = left[0].rpartition("/")[2]
        if program in _RESERVED or (_ASSIGNMENT.fullmatch(left[0]) and len(left) > 1):
            left = left[1:]
        elif program in _WRAPPERS and len(left) > 1:
            left = left[1:]
            while left and (left[0].startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", left[0])):
                left = left[1:]
        else:
            return left
    return left


class _Reader:
    """Reads one line, a character after the other."""

    def __init__(self, line: str) -> None:
        self.nested: list[str] = []
        self._line = line
        self._at = 0
        self._values: dict[str, list[str]] = {"PWD": ["."]}
        self._word: list[str] | None = None
        self._heredocs: list[str] = []

    def commands(self) -> Iterator[Simple]:
        command, target = Simple(), ""
        while self._at < len(self._line):
            sign = self._line[self._at]
            if sign in " \t" or sign in _ENDS or sign in "<>" or self._begins_comment(sign):
                target = self._finish(command, target)
            if sign in "<>" and self._line[self._at + 1 : self._at + 2] != "(":
                target = self._redirection()
            elif sign in _ENDS:
                operator = self._operator()
                if command.words or command.into or command.out_of:
                    yield command
                    command = Simple(before=operator)
                else:
                    command.before = operator
                target = ""
            elif self._begins_comment(sign):
                end = self._line.find("\n", self._at)
                self._at = len(self._line) if end < 0 else end
            elif sign in " \t":
                self._at += 1
            else:
                self._part(sign)
        self._finish(command, target)
        if command.words or command.into or command.out_of:
            yield command

    def _begins_comment(self, sign: str) -> bool:
        return sign == "#" and self._word is None

    def _finish(self, command: Simple, target: str) -> str:
        """End a word; returns what the next one is the target of."""
        if self._word is None:
            return target
        words = [form for word in self._word for form in _braced(word)][:_MOST_FORMS]
        self._word = None
        if target == "<<":
            self._heredocs += words[:1]
        elif target == ">":
            command.into += words
        elif target == "<":
            command.out_of += words
        elif not target:
            assigned = _ASSIGNMENT.fullmatch(words[0]) if words else None
            if assigned and not command.words:
                self._values[assigned[1]] = [word.partition("=")[2] for word in words]
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
            for end in self._heredocs:
                self._heredoc(end)
            self._heredocs = []
        return match[0]

    def _heredoc(self, end: str) -> None:
        body = re.compile(rf"(.*?)^\t*{re.escape(end)}$", re.DOTALL | re.MULTILINE)
        match = body.match(self._line, self._at)
        if match is None:
            return
        opening = self._line[: self._at].rstrip("\n").rpartition("\n")[2]
        if set(re.findall(r"\w+", opening)) & _SHELLS:
            self.nested.append(match[1])
        self._at = match.end()

    def _part(self, sign: str) -> None:
        """Take one more part of a word."""
        self._word = self._word or [""]
        line, at = self._line, self._at
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
            self.nested.append(inner)
            self._add("." if inner == "pwd" else "")
            self._at = end + 1
        elif line[at + 1 : at + 2] == "{":
            end = line.find("}", at)
            end = len(line) if end < 0 else end
            inside = line[at + 2 : end]
            name = _NAME.match(inside)
            default = re.search(r":?[-=+](.*)", inside, re.DOTALL)
            known = self._values.get(name[0] if name else "", [])
            self._add(*(known or [default[1] if default else ""]))
            self._at = end + 1
        else:
            name = _NAME.match(line, at + 1)
            self._add(*(self._values.get(name[0]) or [""] if name else [line[at]]))
            self._at = name.end() if name else at + 1

    def _add(self, *forms: str) -> None:
        pairs = product(self._word or [""], forms)
        self._word = [before + form for before, form in islice(pairs, _MOST_FORMS)]


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


_SHELL = {live: sign for sign, live in LIVE.items()}


@dataclass(frozen=True, slots=True)
class _Piece:
    """One step of a glob: a sign, any sign, one of some; or any number of any sign."""

    sign: str = ""
    many: bool = False
    slash: bool = True
    chosen: re.Pattern[str] | None = None

    def takes(self, sign: str) -> bool:
        if self.sign:
            return self.sign == sign
        if sign == "/" and not self.slash:
            return False
        return self.chosen is None or self.chosen.match(sign) is not None

    def meets(self, other: _Piece) -> bool:
        if self.sign:
            return other.takes(self.sign)
        if other.sign:
            return self.takes(other.sign)
        return True  # two that are open both: near enough


def overlap(path: str, glob: str, *, open_end: bool = False) -> bool:
    """Whether a path could be one that a glob names.

    Args:
        path: A path; signs of `LIVE` in it are those of a shell's glob, which no ``*`` of leads
            past a slash.
        glob: A glob as `fnmatch` reads it.
        open_end: Whether anything may follow the path.
    """
    ours = _pieces(path, _live, slash=False)
    if open_end:
        ours = (*ours, _Piece(many=True))
    theirs = _pieces(glob, _plain, slash=True)
    # reached[j]: the first pieces of the path and j of the glob have a text in common.
    reached = _skipped([True] + [False] * len(theirs), theirs)
    for piece in ours:
        after = [False] * (len(theirs) + 1)
        for j, is_reached in enumerate(reached):
            if not is_reached:
                continue
            if piece.many:
                after[j] = True
            if j < len(theirs) and theirs[j].many:
                after[j] = True
            elif j < len(theirs) and not piece.many and piece.meets(theirs[j]):
                after[j + 1] = True
        if piece.many:
            for j, other in enumerate(theirs):
                if after[j] and (other.many or piece.meets(other)):
                    after[j + 1] = True
        reached = _skipped(after, theirs)
    return reached[-1]


def _skipped(reached: list[bool], theirs: tuple[_Piece, ...]) -> list[bool]:
    """Let every ``*`` of the glob stand for nothing, too."""
    for j, piece in enumerate(theirs):
        if reached[j] and piece.many:
            reached[j + 1] = True
    return reached


def _live(sign: str) -> str:
    return _SHELL.get(sign, "")


def _plain(sign: str) -> str:
    return sign if sign in "*?[]" else ""


@lru_cache(maxsize=1024)
def _pieces(text: str, special: Callable[[str], str], *, slash: bool) -> tuple[_Piece, ...]:
    found: list[_Piece] = []
    at = 0
    while at < len(text):
        meaning = special(text[at])
        end = next((n for n in range(at + 2, len(text)) if special(text[n]) == "]"), 0)
        if meaning == "*":
            found.append(_Piece(many=True, slash=slash))
        elif meaning == "?":
            found.append(_Piece(slash=slash))
        elif meaning == "[" and end:
            found.append(_Piece(slash=slash, chosen=_class(text[at + 1 : end])))
            at = end
        else:
            found.append(_Piece(_SHELL.get(text[at], text[at])))
        at += 1
    return tuple(found)


def _class(inside: str) -> re.Pattern[str] | None:
    negated = inside[:1] in ("!", "^")
    body = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
    try:
        return re.compile(f"[{'^' if negated else ''}{body}]")
    except re.error:  # a range that runs backwards: whatever it is
        return None
