"""The cases that are attacked and the agents that try them, as they stand in the files beside this.

A file has ``texts``, each of which stands where ``@{name}`` does, and ``scenes``: the attributes of
`Scene`, some of them said once for the file, with an agent for each item of ``agents``, named by
``honest`` or ``cheat``; the rest are attributes of `Agent`. The first honest agent leaves what is
``solved``; what is ``wrong`` lies beneath the files of every cheat, where it leaves nothing else. A
text where files belong is the ``module`` of the scene, or the hidden tests of it.
"""

from __future__ import annotations

import py_compile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml

from assay.scoring.json_safe import Json
from tests.processes import marker

__all__ = ["MARK", "Agent", "Files", "Scene", "scenes"]

MARK = marker()
"""What cheats that leave processes behind give `sleep` as its argument: ``@{mark}``."""

Files: TypeAlias = Mapping[str, "str | bytes"]
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """What an agent leaves, and what that is worth.

    Attributes:
        name: The attack, or what honest work looks like.
        files: Laid over the workspace.
        links: Symbolic links: path to target.
        script: Shell lines that it runs in its sandbox.
        answer: What it says in the end.
        trace: Lines of its trace.
        worth: The reward: exactly that of honest work, the most that a cheat may get.
        is_honest: Which of the two it is.
        flag: What one of the signs of tampering must say; empty: nothing is asked.
    """

    name: str
    files: Files = field(default_factory=dict[str, "str | bytes"])
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    script: str = ""
    answer: str = ""
    trace: Sequence[Json] = ()
    worth: float = 0.0
    is_honest: bool = False
    flag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A case, and who tries it.

    Attributes:
        name: Its id.
        suite: The scenes that it is played with; those of a file, where it says nothing else.
        agents: Who tries it.
        graders: As they are declared in a case; none where something else than a command plays it.
        given: The files that agents start from.
        hidden: Files of the case that no agent sees.
        more: Further declarations of the case.
        harness: What plays the agents; another than ``replay`` is declared in `harnesses`.
        harnesses: What ``harnesses.yaml`` says, where ``CASE`` is the case's directory.
        isolation: How its tests are isolated from the submission; empty: as is the default.
        verdict: What every cheat comes to, where that is no reward.
    """

    name: str
    suite: str
    agents: Sequence[Agent]
    graders: Sequence[Mapping[str, Json]] = ()
    given: Files = field(default_factory=dict[str, "str | bytes"])
    hidden: Files = field(default_factory=dict[str, "str | bytes"])
    more: Mapping[str, Json] = field(default_factory=dict[str, Json])
    harness: str = "replay"
    harnesses: Mapping[str, Json] = field(default_factory=dict[str, Json])
    isolation: str = ""
    verdict: str = ""


@cache
def scenes(file: str) -> Sequence[Scene]:
    """Those of one of the files beside this."""
    text = (_HERE / f"{file}.yaml").read_text("utf-8")
    told = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    fill = _Texts(told.pop("texts", {}))
    cases = told.pop("scenes")
    return [_scene({"suite": file, **told, **fill(one)}) for one in cases]


def _scene(told: dict[str, Any]) -> Scene:
    module = told.pop("module", "")
    wrong = _files(told.pop("wrong", {}), module)
    agents = [_agent(one, wrong, module) for one in told.pop("agents", ())]
    if "solved" in told:
        agents.insert(0, _agent({"honest": "solved", "files": told.pop("solved")}, {}, module))
    attributes: dict[str, Any] = {**told, "agents": agents}
    for name, path in (("given", module), ("hidden", f"test_{module}")):
        attributes[name] = _files(told.get(name, {}), path)
    return Scene(**attributes)


def _agent(told: dict[str, Any], wrong: Files, module: str) -> Agent:
    is_honest = "honest" in told
    name = told.pop("honest" if is_honest else "cheat")
    worth = float(Fraction(str(told.pop("worth", int(is_honest)))))
    files = _files(told.pop("files", {}), module)
    if not is_honest:
        links = told.get("links", {})
        files = {**{at: text for at, text in wrong.items() if at not in links}, **files}
    return Agent(name=name, files=files, worth=worth, is_honest=is_honest, **told)


def _files(told: str | Files, module: str) -> Files:
    return {module: told} if isinstance(told, str) else told


class _Texts:
    """Puts texts where their names stand."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {f"@{{{name}}}": text for name, text in texts.items()}

    def __call__(self, told: Any) -> Any:
        """The same, with texts in it."""
        if isinstance(told, list):
            return [self(one) for one in cast("list[Any]", told)]
        if isinstance(told, dict):
            items = cast("dict[str, Any]", told)
            if {*items} == {"repeated", "times"}:
                return items["repeated"] * items["times"]
            return {key: self(value) for key, value in items.items()}
        if not isinstance(told, str) or "@{" not in told:
            return told
        if told == "@{stale bytecode}":
            return _stale_bytecode(self._texts["@{all_pass}"])
        if told in self._texts:
            return self(self._texts[told])
        for name, text in self._texts.items():
            if name in told:
                told = told.replace(name, self(text).rstrip("\n"))
        return told.replace("@{mark}", MARK)


def _stale_bytecode(passing: str) -> bytes:
    """Bytecode of tests that pass, of the Python that runs, not to be compared with its source."""
    with tempfile.TemporaryDirectory() as directory:
        source, made = Path(directory, "test_shelf_hidden.py"), Path(directory, "made.pyc")
        source.write_text(passing, "utf-8")
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), str(made), dfile=source.name, invalidation_mode=mode)
        return made.read_bytes()
