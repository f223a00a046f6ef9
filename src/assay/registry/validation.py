"""Validate a grader before it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from assay.errors import InputError
from assay.graders.empty_answers import doubts, hollow_items
from assay.graders.kinds import kind_of
from assay.graders.spec import GraderSpec
from assay.registry.definitions import Definition, definition_from, lacking_parts
from assay.registry.grading import Permissions, grade_items, refusal
from assay.scoring.graded import Graded
from assay.scoring.validation import Check, ValidationReport
from assay.store.catalog import GraderVersion
from assay.types.submission import Submission

Samples: TypeAlias = "Sequence[Submission | tuple[str, Submission]]"


class ValidationFailedError(InputError):
    """A grader does not do what it must; nothing was stored.

    Attributes:
        key: The grader.
        report: Every check and every sample.
        file: The file that it was read from, if it was; a function's own source.
    """

    def __init__(self, key: str, report: ValidationReport, file: str = "") -> None:
        failed = [check for check in report.checks if not check.passed]
        said = "; ".join(f"{check.name}: {check.at(file)}" for check in failed)
        super().__init__(
            f"grader {key!r} is not valid: {said or 'a sample could not be graded'}",
            hint="nothing was stored",
        )
        self.key = key
        self.report = report
        self.file = file


async def validate(
    definition: Definition,
    samples: Samples,
    permissions: Permissions,
    key: str = "",
    *,
    seconds: float | None = None,
    runs: bool = True,
) -> ValidationReport:
    """Check a grader, and grade samples with it.

    Functions go through the five checks of `assay.graders.functions`. Of other kinds the form was
    checked when the definition was made; what is left is whether a class of one's own is there,
    where it may be imported, and whether each sample can be graded. A grader that cannot run here
    is valid without, and a warning says so. Where nobody else is asked, the first sample is also
    tried with answers that say nothing: those that are paid are named in a warning.

    Args:
        definition: The grader.
        samples: What it grades.
        permissions: What may be done here.
        key: Under which it is stored, or will be.
        seconds: How long a function may begin with samples; those after that are skipped.
        runs: Whether a function is run; else it is only read.
    """
    if definition.kind == "function":
        from assay.graders.function import FunctionGrader, validate_function

        function = FunctionGrader.of(definition.specs[0].options).function()
        return await validate_function(
            function.text,
            samples=samples,
            range=function.range,
            isolation=function.isolation,
            seconds=seconds,
            runs=runs,
        )
    warnings = list(definition_warnings(definition))
    checks = [await _definition_check(definition, permissions)]
    graded: list[Graded] = []
    refused = refusal(definition, permissions, key)
    if refused is not None:
        warnings.append(str(refused))
    elif samples and checks[0].passed:
        graded = await grade_items(definition, _numbered(samples), permissions)
        checks.append(_test_run(graded))
        if checks[-1].passed and all(map(_costs_nothing, definition.specs)):
            warnings += await _hollow_doubts(definition, _numbered(samples)[0][1], permissions)
    return ValidationReport(
        valid=all(check.passed for check in checks),
        checks=tuple(checks),
        warnings=tuple(warnings),
        samples=tuple(graded),
    )


async def validated(
    key: str, definition: Definition, samples: Samples, permissions: Permissions
) -> tuple[Definition, tuple[str, ...]]:
    """The definition, read again from what will be stored, if it does what it must.

    Returns:
        It, and what is worth a look.

    Raises:
        ValidationFailedError: With every check.
    """
    read = definition_from(definition.kind, definition.to_dict())
    report = await validate(read, samples, permissions, key)
    if not report.valid:
        raise ValidationFailedError(key, report)
    return read, report.warnings


async def _definition_check(definition: Definition, permissions: Permissions) -> Check:
    from assay.graders.openai.definitions import check_declared

    try:
        if definition.path and permissions.custom_code:
            kind_of(definition.path)
        if definition.kind == "declared":
            await check_declared(definition.specs)
        # What else is refused is a warning: it can be stored, and run elsewhere.
        for refused in permissions.address_refusals(definition.to_dict()):
            raise refused
    except InputError as error:
        return Check(name="definition", passed=False, message=str(error))
    return Check(name="definition", passed=True)


def _costs_nothing(spec: GraderSpec) -> bool:
    """Whether nobody is asked, so that some more answers can be tried: no model, no endpoint."""
    from assay.graders.comparison import Comparison
    from assay.graders.function import FunctionGrader
    from assay.graders.openai.base import OpenAIGrader
    from assay.graders.openai.definitions import judges_of, models_needed

    grader = spec.kind.grader
    if issubclass(grader, OpenAIGrader):
        definition = grader.defined(spec.options)
        return not judges_of(definition) and not models_needed(definition)
    return issubclass(grader, Comparison | FunctionGrader)


async def _hollow_doubts(
    definition: Definition, sample: Submission, permissions: Permissions
) -> list[str]:
    """Answers that say nothing, and are paid for the first sample."""
    items = hollow_items(sample, *(dict(spec.options) for spec in definition.specs))
    graded = await grade_items(definition, [(one.id, item) for one, item in items], permissions)
    return list(doubts([(one, g) for (one, _), g in zip(items, graded, strict=True)]))


def _numbered(samples: Samples) -> list[tuple[str, Submission]]:
    return [
        sample if isinstance(sample, tuple) else (str(number), sample)
        for number, sample in enumerate(samples, 1)
    ]


def _test_run(graded: Sequence[Graded]) -> Check:
    failed = [one for one in graded if one.status == "error"]
    if not failed:
        return Check(name="test_run", passed=True)
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    message = f"sample {failed[0].id!r} could not be graded: {failed[0].error}{more}"
    return Check(name="test_run", passed=False, message=message)


def definition_warnings(definition: Definition) -> tuple[str, ...]:
    """What is not wrong with a definition, but worth a look; of functions their validation says it.

    It is the same for ever for one version: it follows from the definition alone.
    """
    lacking = tuple(
        f"grader {grader!r} needs {part!r}, which rows do not have: they cannot be graded"
        for grader, part in lacking_parts(definition.specs)
    )
    if definition.kind == "binary_judge":
        return (*lacking, *_judge_warnings(definition.specs[0]))
    return (*lacking, *judge_warnings(definition.specs))


def judge_warnings(specs: Iterable[GraderSpec]) -> tuple[str, ...]:
    """What is worth a look in declared judges, each with the grader's name."""
    return tuple(
        f"grader {spec.label!r}: {warning}" for spec in specs for warning in _judge_warnings(spec)
    )


def _judge_warnings(spec: GraderSpec) -> Iterator[str]:
    models = spec.options.get("models")
    if "fake" in (spec.options.get("model"), *(models if isinstance(models, list) else ())):
        yield (
            "the model fake looks for words, and obeys whoever tricks it: its verdicts show "
            "that all is connected, and nothing else"
        )
    if spec.type == "binary_judge":
        from assay.graders.binary_judge import BinaryJudgeGrader

        # A criterion that comes from rows is not there yet, and its templates are.
        options = {"criteria": "What the row asks for.", **spec.options}
        yield from BinaryJudgeGrader.of(options).warnings()


def version_warnings(version: GraderVersion) -> tuple[str, ...]:
    """What `definition_warnings` says of a stored version."""
    return definition_warnings(definition_from(version.kind, version.definition))
