"""Read a test command: which runner will it start, and how?

Only what is needed to know how the outcomes will be learnt. The line itself is run by a shell; a
line that is read wrongly here loses its report, it never gains one.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal, cast

from assay.errors import InputError
from assay.frozen import frozen

Runner = Literal["pytest", "unittest", "node", "unknown"]
"""``unknown``: something that may start one of the others, such as ``make``."""

_PYTHON = frozenset({"python", "python3"})
_PYTEST = frozenset({"pytest", "py.test"})
_PACKAGE = frozenset({"npm", "yarn", "pnpm"})
_BUILDERS = frozenset({"make", "gmake", "just", "tox", "nox", "task", "invoke", "ninja"})
_SHELLS = frozenset({"sh", "bash", "dash"})
_WRAPPERS = frozenset({"env", "command", "exec", "time", "nice", "nohup", "xvfb-run", "stdbuf"})
_RESERVED = frozenset({"!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while"})
_BRANCHING = frozenset(
    {
        *("if", "while", "until", "case", "for", "function", "select"),
        *(".", "source", "alias", "eval", "which", "type", "hash"),
    }
)
"""Words after which it is not plain what a line runs, or which it runs only where it can."""
_GIVING_UP = frozenset({"exit", "false", "true", ":", "return", "echo", "printf", "{", ""})
_BASH_OWN = frozenset(
    {"[[", "let", "declare", "typeset", "shopt", "pushd", "popd", "mapfile", "readarray", "disown"}
)
_WRAPPED = frozenset({"mvnw", "gradlew"})
_TEST_PHASES = frozenset({"test", "package", "verify", "install"})
_REPORTERS = frozenset({"--reporter", "--reporters", "-R", "--json", "--silent", "--outputFile"})
_NAME = re.compile(r"[A-Za-z_\[][\w.+\[-]*")
_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_DEEPEST = 4
_LARGEST = 1024 * 1024


@frozen(kw_only=True)
class Invocation:
    """How a command line starts its tests."""

    runner: Runner | None
    program: str = ""
    args: tuple[str, ...] = ()
    # Directory below the workspace in which it runs; empty for the workspace.
    cwd: str = ""
    exact: bool = False
    scripts: tuple[str, ...] = ()


@frozen(kw_only=True)
class Report:
    """Where a foreign runner says what came of its tests."""

    program: str
    junit_xml: tuple[str, ...] = ()
    format: str | None = None
    before: str = ""

    def __str__(self) -> str:
        if self.junit_xml:
            return f"junit_xml: {', '.join(self.junit_xml)}"
        return f"format: {self.format}"


@frozen
class _Simple:
    """One simple command of a line, and the operators around it."""

    words: tuple[str, ...]
    before: str
    after: str


def read_command(line: str, tree: str | None = None) -> Invocation:
    """Find out how a line starts its tests.

    ``tree``: Where ``package.json`` and ``Makefile`` are looked up: a tree that no submission can
    write. Without it they stay unknown.
    """
    found = list(_invocations(line, tree, _DEEPEST, ""))
    scripts = tuple(name for one in found for name in one.scripts)
    known = [one for one in found if one.runner not in (None, "unknown")]
    if len(known) > 1:
        raise InputError(
            f"{line!r} starts {len(known)} test runners",
            hint="one grader reads the report of one runner: declare a grader for each",
        )
    rest = [one for one in found if one.runner == "unknown"] or found[-1:]
    chosen = (known or rest or [Invocation(runner=None)])[0]
    return replace(chosen, scripts=scripts)


def first_program(line: str) -> str:
    """The program that a line starts with, if it is one to be found on the PATH; else empty."""
    if "PATH" in line:  # the line itself says where
        return ""
    words = (_unwrapped(command.words) for command in _simple_commands(line))
    program = next((one[0] for one in words if one and one[0] not in ("cd", "set", "export")), "")
    return "" if any(sign in program for sign in "/$`*?") else program


def implied_report(line: str) -> Report | None:
    """How the outcomes of a line are read, where the runner that it names leaves no doubt.

    None where it starts no such runner or several, or with options that change what it prints.
    """
    try:
        found = list(_invocations(line, None, _DEEPEST, ""))
    except InputError:
        return None
    reports = [r for one in found if one.runner is None and (r := _report_of(one, line))]
    return reports[0] if len(reports) == 1 else None


def _report_of(one: Invocation, line: str) -> Report | None:
    words = [one.program.rpartition("/")[2], *one.args]
    if words[0] == "npx":
        words = [word for word in words[1:] if word not in ("--no-install", "-y", "--yes")]
    program = words[0].removesuffix("w") if words and words[0] in _WRAPPED else "".join(words[:1])
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    if program in ("jest", "vitest", "mocha"):
        name = program
        return None if options & _REPORTERS else Report(program=name, format=name)
    args = [word for word in words[1:] if not word.startswith(("-", "+"))]
    if program in ("cargo", "go") and args[:1] == ["test"]:
        if program == "cargo":
            quiet = options & {"-q", "--quiet", "--format"}
            return None if quiet else Report(program="cargo test", format="cargo")
        before = "" if "-json" in options else 'export GOFLAGS="-json ${GOFLAGS:-}"; '
        taken_away = before and "GOFLAGS=" in line
        return None if taken_away else Report(program="go test", format="go-json", before=before)
    tasks = {word.rpartition(":")[2] for word in args}
    if program == "mvn" and tasks & _TEST_PHASES:
        return Report(program=program, junit_xml=("**/target/surefire-reports/TEST-*.xml",))
    if program == "gradle" and tasks & {"test", "check", "build"}:
        return Report(program=program, junit_xml=("**/build/test-results/test/*.xml",))
    return None


def programs_of(line: str) -> tuple[str, ...]:
    """The programs, to be found on the PATH, without which a line cannot do what it says.

    Read cautiously: a line that branches, looks for its programs or sets its own PATH names none,
    and of alternatives (``a || b``) neither is needed.
    """
    line = line.replace("\\\n", " ")
    if "PATH" in line or "<<" in line or "`" in line:
        return ()
    try:
        commands = _simple_commands(line)
    except InputError:  # the shell will say what is wrong with it
        return ()
    found: list[str] = []
    for number, command in enumerate(commands):
        words = _unwrapped(command.words, plainly=True)
        is_check = command.words[:2] == ("command", "-v")
        if is_check or _BRANCHING & {*command.words[:1], *words[:1]} or command.after[:2] == "()":
            return ()
        if any(word.endswith("$") for word in command.words):  # of `$(`, which is read as a word
            return ()
        after = commands[number + 1].words[0] if number + 1 < len(commands) else ""
        if command.before == "||" or (command.after == "||" and after not in _GIVING_UP):
            continue
        if words and words[0] in _SHELLS and words[1:2] == ["-c"] and len(words) > 2:
            inner = programs_of(words[2])
            own = _BASH_OWN if words[0] == "bash" else frozenset[str]()
            found += [name for name in inner if name not in own]
        if words and _NAME.fullmatch(words[0]):
            found.append(words[0])
    return tuple(dict.fromkeys(found))


def _invocations(line: str, tree: str | None, depth: int, cwd: str) -> Iterator[Invocation]:
    if depth == 0:
        return
    commands = _simple_commands(line)
    for number, command in enumerate(commands):
        words = _unwrapped(command.words)
        if not words:
            continue
        if words[0] == "cd" and len(words) == 2 and not words[1].startswith("/"):
            cwd = str(PurePosixPath(cwd, words[1]))
            continue
        later = {one.before for one in commands[number + 1 :]} | {command.after}
        last = number == len(commands) - 1 and "!" not in command.words
        exact = last and later <= {"", ";"} and command.before in ("", ";", "&&")
        for one in _of_program(words, tree, depth, cwd):
            yield replace(one, cwd=one.cwd or cwd, exact=one.exact and exact)


def _simple_commands(line: str) -> list[_Simple]:
    lexer = shlex.shlex(line.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError as error:
        raise InputError(f"{line!r} is not a shell line: {error}") from None
    commands: list[_Simple] = []
    words: list[str] = []
    before, skip_next, comment = "", False, False
    for token in [*tokens, ";"]:
        is_operator = not token.strip("();<>|&") and token != ""
        if is_operator and set(token) & set("<>"):
            skip_next = True
            if words and words[-1].isdigit():
                words.pop()
        elif is_operator:
            if words:
                commands.append(_Simple(tuple(words), before, token))
            words, before, comment = [], token, False
        elif skip_next:
            skip_next = False
        elif comment or token.startswith("#"):
            comment = True
        else:
            words.append(token)
    if commands and commands[-1].after == ";":
        commands[-1] = replace(commands[-1], after="")
    return commands


def _unwrapped(words: Sequence[str], *, plainly: bool = False) -> list[str]:
    """The words from the program on: no assignments, no ``env``, ``timeout 60`` and the like.

    ``plainly``: Whether a wrapper with options of its own is taken for the program.
    """
    left = list(words)
    while left:
        head = left[0]
        if head in _RESERVED or ("=" in head and head.partition("=")[0].isidentifier()):
            left = left[1:]
        elif head == "timeout" or head in _WRAPPERS:
            if plainly and (len(left) < 2 or left[1].startswith("-")):
                break
            left = left[1:]
            while left and left[0].startswith("-"):
                left = left[1:]
            if head == "timeout":
                left = left[1:]
        else:
            break
    return left


def _of_program(words: list[str], tree: str | None, depth: int, cwd: str) -> Iterator[Invocation]:
    program, args = words[0], words[1:]
    plain = Invocation(runner=None, program=program, args=tuple(args), exact=True)
    if program in _PYTHON:
        yield _python(plain)
    elif program in _PYTEST:
        yield replace(plain, runner="pytest")
    elif program == "node":
        scripts = tuple(str(PurePosixPath(cwd, word)) for word in args[:1] if word[:1] != "-")
        tests = "--test" in args
        yield replace(plain, runner="node" if tests else None, scripts=() if tests else scripts)
    elif program in _SHELLS and (line := _after_c(args)) is not None:
        yield from _invocations(line, tree, depth - 1, cwd)
    elif program in _PACKAGE:
        yield from _package_script(plain, tree, depth, cwd)
    elif program in ("make", "gmake"):
        yield from _make_target(plain, tree, depth, cwd)
    elif program in _BUILDERS or program in _SHELLS or program.endswith(".sh") or program == ".":
        yield replace(plain, runner="unknown", exact=False)
    else:
        yield plain


def _python(plain: Invocation) -> Invocation:
    """Read the interpreter's own options up to the module, script or code that it runs."""
    words = list(plain.args)
    while words:
        word = words.pop(0)
        if word in _VALUED:
            words = words[1:]
        elif not word.startswith("-") or word == "-":
            return replace(plain, scripts=(word,))
        elif word[:2] in ("-W", "-X", "--"):
            continue
        elif "c" in word:
            return plain
        elif "m" in word:
            module = word.partition("m")[2] or (words.pop(0) if words else "")
            runner: Runner | None = None
            if module == "pytest":
                runner = "pytest"
            elif module == "unittest":
                runner = "unittest"
            program = f"{plain.program} -m {module}"
            return replace(plain, runner=runner, program=program, args=tuple(words))
    return plain


def _after_c(args: Sequence[str]) -> str | None:
    for number, word in enumerate(args):
        if word.startswith("-") and word.endswith("c"):
            return args[number + 1] if number + 1 < len(args) else None
        if not word.startswith("-"):
            return None
    return None


def _package_script(
    plain: Invocation, tree: str | None, depth: int, cwd: str
) -> Iterator[Invocation]:
    """What a script of ``package.json`` starts; unknown where it cannot be looked up."""
    words = [word for word in plain.args if not word.startswith("-")]
    if words[:1] in (["run"], ["run-script"]):
        words = words[1:]
    name = {"t": "test", "tst": "test"}.get(words[0], words[0]) if words else ""
    line = _script(read_beside(tree, cwd, "package.json"), name)
    found: list[Invocation] = []
    if line:
        found = list(_invocations(line, tree, depth - 1, cwd))
    yield from (replace(one, exact=False) for one in found)
    if not found:
        yield replace(plain, runner="unknown", exact=False)


def _script(manifest: str, name: str) -> str:
    """The line of one script of a ``package.json``; empty if it has none."""
    try:
        content: object = json.loads(manifest)
    except (ValueError, RecursionError):
        return ""
    for key in ("scripts", name):
        content = cast("dict[str, object]", content).get(key) if isinstance(content, dict) else ""
    return content if isinstance(content, str) else ""


def _make_target(plain: Invocation, tree: str | None, depth: int, cwd: str) -> Iterator[Invocation]:
    """What a target's recipe starts, where it says so in plain words; otherwise unknown."""
    targets = [word for word in plain.args if word[:1] != "-" and "=" not in word]
    text = next(
        (
            text
            for name in ("GNUmakefile", "makefile", "Makefile")
            if (text := read_beside(tree, cwd, name))
        ),
        "",
    )
    lines = text.replace("\\\n", " ").splitlines()
    named = False
    for line in lines:
        if not line.startswith("\t"):
            named = line.partition(":")[0].strip() in targets[:1]
        elif named:
            recipe = line.strip().lstrip("@-+")
            known = _known_in(recipe, tree, depth, cwd)
            if known:
                yield replace(known, exact=False)
                return
    yield replace(plain, runner="unknown", exact=False)


def _known_in(recipe: str, tree: str | None, depth: int, cwd: str) -> Invocation | None:
    try:
        found = list(_invocations(recipe, tree, depth - 1, cwd))
    except InputError:
        return None
    return next((one for one in found if one.runner not in (None, "unknown")), None)


def read_beside(tree: str | None, cwd: str, name: str) -> str:
    """The text of a file that a line may run; empty if there is none, or none to be trusted."""
    if tree is None:
        return ""
    path = Path(tree, cwd, name)
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
