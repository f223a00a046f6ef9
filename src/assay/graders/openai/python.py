"""``openai_python``: OpenAI's ``python`` graders, ``def grade(sample, item)``, in the sandbox."""

from __future__ import annotations

import functools
import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from assay.errors import ProgramError
from assay.graders.functions.apart import examined_apart
from assay.graders.functions.grading import TWICE
from assay.graders.openai.base import (
    OpenAIDefinition,
    OpenAIGrader,
    Ranged,
    wrong,
)
from assay.graders.openai.rewards import FaultError, GivenReward, SubmissionFaultError
from assay.graders.openai.template import TemplateScope
from assay.graders.paths import CasePath
from assay.scoring.json_safe import Json
from assay.types.codec import Problem, ShapeError

if TYPE_CHECKING:
    from assay.sandbox.functions import Outcome, Program

MAX_SOURCE_BYTES = 256_000
"""Size from which a source is refused."""

_REMEMBERED = 64
_known: OrderedDict[str, Examination] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found in a source."""

    fault: str = ""
    hint: str = ""
    # Packages it imports that are not in the standard library, sorted; the first 50.
    foreign: tuple[str, ...] = ()


def check_size(source: str) -> None:
    """Refuse a source that is too long."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size >= MAX_SOURCE_BYTES:
        raise wrong("source", f"is {size:,} bytes long", f"less than {MAX_SOURCE_BYTES:,}")


async def examine_source(source: str) -> Examination:
    """Whether a source is Python that defines ``grade(sample, item)``, and what it imports.

    It is parsed in the sandbox, within the time and memory of a function's call: a source that
    takes more is refused. The latest findings are remembered.
    """
    found = _known.get(source)
    if found is None:
        found = _known[source] = await _examined(source)
        if len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return found


async def _examined(source: str) -> Examination:
    found = await examined_apart(source, "openai.static")
    if isinstance(found, str):
        fault = f"is not Python that can be read within bounds ({found})"
        return Examination(fault=fault, hint="write it more simply")
    foreign = tuple(cast("list[str]", found["foreign"]))
    return Examination(fault=str(found["fault"]), hint=str(found["hint"]), foreign=foreign)


SECONDS = 120.0
"""What one call may take, of CPU time and of real time; loading the source may take half of it."""

MEMORY_BYTES = 1 << 30
"""Address space of one process of a call, as function graders have: servers are shared."""

_SAMPLE = ("choices", "output_text", "output_json", "output_tools", "output_audio")
_CALL = """\
def arguments(payload):
    return payload["sample"], payload["item"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIPython(Ranged):
    """Calls ``grade(sample, item)`` in the sandbox, with the limits that OpenAI gives it.

    Attributes:
        source: The Python source.
        file: A file with it, instead.
        image_tag: What OpenAI ran it in; kept, and of no effect here.
        pass_threshold: Reward from which it passes.
        range: What is worth 0 and what is worth 1; ``[0, 1]`` by default.
        compat: ``openai``: an exception or a return that is not a number is worth 0, and flagged;
            it is an error otherwise.
        pass_fail: Whether it is worth 1 where it passes and 0 where it does not; its reward stays
            in the evidence.
        name: What it is called.
    """

    TAG: ClassVar[str] = "openai_python"

    source: str | None = None
    file: CasePath | None = None
    image_tag: str | None = None
    pass_threshold: float | None = None
    pass_fail: bool = False
    range: tuple[float, ...] | None = None
    compat: Literal["openai"] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        self.check_scale()
        if (self.source is None) == (self.file is None):
            raise wrong("source", "there must be either 'source' or 'file'")
        check_size(self.text)

    @property
    def text(self) -> str:
        """The source."""
        if self.source is not None:
            return self.source
        try:
            with Path(self.file or "").open("rb") as handle:
                return handle.read(MAX_SOURCE_BYTES + 4).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise wrong("file", f"{self.file} cannot be read: {error}") from error

    async def examined(self) -> Examination:
        """What is found in the source when it is parsed, in the sandbox."""
        return await examine_source(self.text)

    async def check(self) -> None:
        """Reject a source that is not Python, or does not define ``grade(sample, item)``."""
        found = await self.examined()
        if found.fault:
            field = "source" if self.file is None else "file"
            raise ShapeError([Problem((field,), found.fault, found.hint)])

    async def reward(self, scope: TemplateScope) -> GivenReward:
        """What the function returns.

        Time-outs, memory and crashes that repeat are what the sample brought about: worth nothing.
        """
        from assay.sandbox.functions import FunctionLimits, pool_for

        limits = FunctionLimits(
            cpu_seconds=SECONDS,
            wall_seconds=SECONDS,
            load_seconds=SECONDS / 2,
            memory_bytes=MEMORY_BYTES,
        )
        sample: dict[str, Json] = {**dict.fromkeys(_SAMPLE), **scope.sample}
        payload = json.dumps({"sample": sample, "item": scope.item}).encode()
        if len(payload) > limits.payload_bytes:
            by_item = len(json.dumps(scope.item)) > limits.payload_bytes // 2
            fault = FaultError if by_item else SubmissionFaultError
            message = f"sample and item are {len(payload):,} bytes, more than a function is given"
            raise fault(message, flag="sample_parse_error", outcome="too_long")
        try:
            outcome = await pool_for(_program(self.text), limits=limits).call(payload)
        except ProgramError as error:
            raise self._failed(error.message, "error", {}) from error
        return self._reward(outcome)

    def _reward(self, outcome: Outcome) -> GivenReward:
        details: dict[str, object] = {
            "output": outcome.output,
            "cpu_seconds": outcome.cpu_seconds,
            "wall_seconds": outcome.wall_seconds,
        }
        if outcome.status == "ok" and outcome.score is not None:
            passed = self.passed(outcome.score)
            return GivenReward(value=outcome.score, passed=passed, details=details)
        message = outcome.message or outcome.status
        if outcome.status in TWICE:
            raise SubmissionFaultError(
                f"grade() ended by {outcome.status}: {message}",
                flag="python_grader_runtime_error",
                outcome=outcome.status,
                details=details,
                signs=TWICE[outcome.status][:1],
            )
        if outcome.status in ("sandbox_error", "late"):
            flag, said = "python_grader_server_error", f"the sandbox failed: {message}"
            raise FaultError(said, flag=flag, outcome=outcome.status, details=details)
        raise self._failed(f"grade(): {message}", outcome.status, details)

    def _failed(self, message: str, outcome: str, details: dict[str, object]) -> FaultError:
        fault = SubmissionFaultError if self.compat == "openai" else FaultError
        flag = "python_grader_runtime_error"
        return fault(message, flag=flag, outcome=outcome, details=details)


@functools.lru_cache(maxsize=64)
def _program(source: str) -> Program:
    from assay.sandbox.functions import Program

    modules = {"assay_openai": _CALL}
    return Program(source=source, modules=modules, argument="assay_openai:arguments")


class OpenAIPythonGrader(OpenAIGrader):
    """``def grade(sample, item)`` in the sandbox (OpenAI's ``python``)."""

    name: ClassVar[str] = "openai_python"
    definition: ClassVar[type[OpenAIDefinition]] = OpenAIPython
