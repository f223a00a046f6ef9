"""Handlebars' own tests, by the templates of judges."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from assay.errors import AssayError
from assay.graders.judges.template import render
from assay.scoring.json_safe import Json
from bench.proof.material import Case, Difference, Source, recorded

ABOUT = "templates of judges become the text that Handlebars' tests expect"
SOURCE = Source("handlebars-lang/handlebars.js", "13a7a679910d2adbfe7f6fad61ce8f98426b0378", "MIT")
_LITERAL = "A tag that holds a literal writes it; Handlebars looks it up as a name."
AGREE, OF = 106, 305
DIFFERENCES = (
    Difference(
        "*",
        "by design",
        "The test hands over code: functions, helpers, partials or options of the compiler. A "
        "template here is data and calls nothing.",
        said="needs *",
    ),
    Difference(
        "*",
        "by design",
        "Sections by name (`{{#name}}`, `{{^name}}`), `{{^}}`, `log` and partials are refused with "
        "what to write instead: `#if`, `#unless`, `#each`, `#with` and `{{else}}`.",
        said="*, refused: *",
    ),
    Difference("*/literal references#*", "by design", _LITERAL),
    Difference("*/pass * literals#*", "by design", _LITERAL),
    Difference(
        "basic/*", "by design", "The values of a judge's template are an object, never one value."
    ),
    Difference(
        "*GH-676*", "by design", "A list is written as JSON, so that a judge sees that it is one."
    ),
    Difference("*GH-1065*", "theirs", "Lists of JSON have no holes."),
    Difference("*GH-437*", "assay", "A third closing brace is text here, and an error there."),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each expectation of seven files of tests, in the order of the files."""
    if not (directory / "spec" / "basic.js").is_file():
        return
    for test in recorded(Path(__file__).with_suffix(".cjs"), str(directory)):
        yield _compared(test)


def _compared(test: dict[str, Any]) -> Case:
    """One expectation; the texts here are not escaped for HTML, which no judge reads."""
    if test["needs"]:
        return Case(test["id"], False, f"needs {', '.join(test['needs'])}")
    expected = test["expected"]
    given = cast("dict[str, Json]", test["input"] if isinstance(test["input"], dict) else {})
    try:
        text = render(test["template"], given)
    except AssayError as error:
        return Case(test["id"], expected is None, f"{expected!r} expected, refused: {error}")
    agrees = expected is not None and text in (expected, html.unescape(expected))
    return Case(test["id"], agrees, f"{expected!r} expected, {text!r} written")
