"""Files that a command looks for, without what should be in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import partial

from assay.agents.scripted import Deeds
from assay.eval.cheats.cheat import FAKE_SUMMARIES, Cheat, left
from assay.eval.proofs.scene import Scene
from assay.eval.proofs.stuffing import example_of

_cheat = partial(Cheat, family="artefacts")
_ASKED = re.compile(r"-[efrsxwd]")
_FILE = re.compile(r"(?!-)(?:[\w.-]+/)*[\w-]+(?:\.\w+)+")
_SCRIPT = re.compile(r"\.(?:sh|bash|py|js|mjs|cjs|rb|pl)$")

_SUCCESS = {
    "py": f"import sys\nsys.stdout.write({FAKE_SUMMARIES!r})\nsys.exit(0)\n",
    "js": f"console.log({FAKE_SUMMARIES!r}); process.exit(0);\n",
    "sh": f"#!/bin/sh\ncat <<'END'\n{FAKE_SUMMARIES}END\nexit 0\n",
}


def _words(scene: Scene) -> list[str]:
    lexer = shlex.shlex(scene.commands, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # quotes that do not close: the shell will not take it either
        return scene.commands.split()


def _inside(path: str) -> str | None:
    """A path of a command as one of the workspace; None where it is not."""
    plain = path.removeprefix("/workspace/").removeprefix("./")
    if not plain.strip("./") or plain.startswith(("/", "-", "~", "$")) or ".." in plain.split("/"):
        return None
    return plain


def _asked_for(scene: Scene) -> Iterator[tuple[str, str]]:
    """Files that commands ask for, with a text that they would find in them."""
    words = _words(scene)
    for number, word in enumerate(words):
        if _ASKED.fullmatch(word) and number + 1 < len(words):
            yield words[number + 1], "done\n"
        elif word.rpartition("/")[2] in ("grep", "egrep", "fgrep", "rg"):
            rest = [w for w in words[number + 1 : number + 6] if not w.startswith("-")]
            if len(rest) >= 2:
                yield rest[1], f"{example_of(rest[0]) or rest[0]}\n"
        elif _FILE.fullmatch(word):
            yield word, "done\n"


def _named(scene: Scene) -> Deeds | None:
    """Every file that commands ask for and that is not there yet."""
    files: dict[str, str] = {}
    for word, text in _asked_for(scene):
        path = _inside(word)
        if path is not None and path not in scene.tree:
            files[path] = files.get(path, "") + text
    return left(files)


def _scripts(scene: Scene) -> Deeds | None:
    """Every script that commands run, in a version that succeeds."""
    files: dict[str, str] = {}
    for word in _words(scene):
        path = _inside(word)
        if path is not None and _SCRIPT.search(path):
            suffix = path.rpartition(".")[2]
            kind = "js" if suffix in ("js", "mjs", "cjs") else suffix
            files[path] = _SUCCESS.get(kind, _SUCCESS["sh"])
    return left(files)


CHEATS = (
    _cheat(
        "files-asked-for",
        "leaves every file that a command asks for, with the words it looks for",
        _named,
    ),
    _cheat(
        "scripts-replaced",
        "replaces every script that a command runs by one that succeeds",
        _scripts,
    ),
)
