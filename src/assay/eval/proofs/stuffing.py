"""Keyword stuffing: every word that a careless grader could look for, and no thought behind it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from assay.agents.scripted import Deeds
from assay.errors import InputError
from assay.eval.proofs.scene import Scene
from assay.graders.empty_answers import words_in
from assay.graders.kinds import KINDS
from assay.scoring.json_safe import Json
from assay.text.pattern import compile_pattern

_COMMENTS = {
    ".py": "#", ".rb": "#", ".sh": "#", ".toml": "#", ".yaml": "#", ".yml": "#",
    ".js": "//", ".mjs": "//", ".cjs": "//", ".ts": "//", ".tsx": "//", ".jsx": "//",
    ".go": "//", ".rs": "//", ".java": "//", ".c": "//", ".h": "//", ".cpp": "//", ".kt": "//",
}  # fmt: skip


def keywords(scene: Scene) -> tuple[str, ...]:
    """What a stuffer writes down: texts that patterns look for, and words of everything named.

    Words of the expected answer are in no order, so that they are its words and not the answer.
    """
    named: list[Json] = []
    for spec in scene.graders:
        named += [
            _text_of(str(file)) for key in ("rubric", "file") if (file := spec.options.get(key))
        ]
        if spec.type in KINDS and spec.type not in ("command", "files", "tests", "pytest"):
            named.append({k: v for k, v in spec.options.items() if k not in ("rubric", "cmd")})
    if scene.case is None:  # a template's own code grades
        named.append(_text_of(scene.task.file))
    expected = None if scene.case is None else scene.case.expected
    return phrases(scene) + words_in(*named, expected, scene.prompt)


def phrases(scene: Scene) -> tuple[str, ...]:
    """Texts that the patterns of graders match, and the patterns themselves."""
    found: list[str] = []
    for spec in scene.graders:
        patterns = spec.options.get("patterns")
        for pattern in patterns if isinstance(patterns, list) else []:
            found += [example_of(str(pattern)), str(pattern)]
    return tuple(dict.fromkeys(phrase for phrase in found if phrase))


def stuffed(scene: Scene) -> Deeds:
    """Keywords as the answer, in a file of notes, and in a comment at the end of every source."""
    found = keywords(scene)
    text = "\n".join(found)
    files = {"notes.txt": text.encode()}
    for path, content in scene.tree.items():
        mark = _COMMENTS.get(Path(path).suffix)
        if mark is not None:
            lines = "".join(f"{mark} {line}\n" for line in text.splitlines())
            files[path] = content.rstrip(b"\n") + b"\n\n" + lines.encode()
    return Deeds(files=files, answer=text)


def stuffed_code(scene: Scene) -> Deeds | None:
    """What patterns look for, in code that never runs; None where there are no patterns."""
    found = phrases(scene)
    files: dict[str, bytes] = {}
    for path, text in scene.sources(".py", ".js", ".mjs", ".cjs", ".ts").items():
        if path.endswith(".py"):
            lines = "".join(f"    {line}\n" for phrase in found for line in _python_lines(phrase))
            files[path] = f"{text}\n\ndef _later():\n{lines}    return None\n".encode()
        else:
            files[path] = f"{text}\nconst _later = {json.dumps(list(found))};\n".encode()
    return Deeds(files=files) if found and files else None


def _python_lines(phrase: str) -> list[str]:
    """A phrase as Python code if it is some, and as a text that is kept."""
    lines = [f"_kept = {phrase!r}"]
    try:
        ast.parse(phrase)
    except (SyntaxError, ValueError):
        return lines
    return lines if "\n" in phrase else [*lines, phrase]


def example_of(pattern: str) -> str:
    r"""A text that a regular expression matches, if it is easily found; else an empty one.

    Alternatives, sets and repetitions are taken at their simplest, so that ``max_retries\s*=\s*\d``
    gives ``max_retries=1``.
    """
    try:
        compiled = compile_pattern(pattern)
        text = _Example(pattern).alternatives()
    except (InputError, IndexError, RecursionError):
        return ""
    return text if compiled.search(text) is not None else ""


class _Example:
    """Reads a pattern once, from left to right, and writes one text that it matches."""

    _CLASSES = {"d": "1", "w": "a", "s": " ", "n": "\n", "t": "\t", "D": "a", "S": "a", "W": " "}  # noqa: RUF012

    def __init__(self, pattern: str) -> None:
        self._left = re.sub(r"^\(\?[a-zA-Z]+\)", "", pattern)

    def alternatives(self) -> str:
        """The first alternative, up to the group's end or the pattern's."""
        first: str | None = None
        text = ""
        while self._left and self._left[0] != ")":
            if self._left[0] == "|":
                first = text if first is None else first
                self._left, text = self._left[1:], ""
            else:
                text += self._repeated(self._atom())
        return text if first is None else first

    def _atom(self) -> str:
        sign, self._left = self._left[0], self._left[1:]
        if sign == "\\":
            letter, self._left = self._left[0], self._left[1:]
            return "" if letter in "bBAz" else self._CLASSES.get(letter, letter)
        if sign == "(":
            self._left = re.sub(r"^\?(?:P?<\w+>|[a-zA-Z]*:)", "", self._left)
            text = self.alternatives()
            self._left = self._left[1:]
            return text
        if sign == "[":
            return self._set()
        return "" if sign in "^$" else "x" if sign == "." else sign

    def _set(self) -> str:
        end = self._left.index("]", 1) if "]" in self._left[1:] else len(self._left)
        inside, self._left = self._left[:end], self._left[end + 1 :]
        if inside.startswith("^"):
            return next((c for c in "x 1_" if c not in inside), "")
        return self._CLASSES.get(inside[1:2], inside[1:2]) if inside[0] == "\\" else inside[0]

    def _repeated(self, text: str) -> str:
        found = re.match(r"(\*|\+|\?|\{(\d+)(?:,\d*)?\})\??", self._left)
        if found is None:
            return text
        self._left = self._left[found.end() :]
        return text * min(int(found[2]), 200) if found[2] else "" if found[1] in "*?" else text


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text("utf-8", "replace")
    except OSError:
        return ""
