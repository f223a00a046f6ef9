"""What a function must be before it may grade: every corner of the contract, tried for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import InputError, ProgramError
from assay.graders.functions import (
    FunctionSource,
    grade_functions,
    read_source,
    validate_function,
)
from assay.graders.functions.static import examine
from assay.sandbox.functions import FunctionLimits
from assay.types import StringThread, Submission
from tests.each import each

HEAD = "async def grade(thread: StringThread) -> float:\n"
RETURN = HEAD + "    return "
GOOD = RETURN + "1.0\n"
CHECKS = ["syntax", "structure", "signature", "execution", "test_run"]
IMPATIENT = FunctionLimits(cpu_seconds=0.2, wall_seconds=60.0, load_seconds=0.5)

pytestmark = pytest.mark.sandbox


async def failed(source: str, limits: FunctionLimits | None = None) -> tuple[str, str, int | None]:
    """The check that fails, its message and its line."""
    report = await validate_function(source, limits=limits)
    assert not report.valid
    check = report.failed
    assert check is not None
    names = [check.name for check in report.checks]
    assert names == CHECKS[: len(names)] or names == ["size"]
    assert [c.passed for c in report.checks] == [*[True] * (len(names) - 1), False]
    return check.name, check.message, check.line


async def test_a_good_function_passes_all_five_without_a_word() -> None:
    report = await validate_function(GOOD)
    assert report.valid
    assert [(c.name, c.passed, c.message) for c in report.checks] == [(n, True, "") for n in CHECKS]
    assert report.warnings == ()
    assert report.tier in ("bwrap", "landlock")
    example = "StringThread([('user', 'What is 2+2?'), ('assistant', '4')], {})"
    assert (
        await validate_function(f"{HEAD}    assert thread == {example}\n    return 1.0\n")
    ).valid


REFUSED = [
    ("x = (", "syntax", "line 1, column 5", 1),
    ("\n\0" + GOOD, "syntax", "line 2: there is a null character", 2),
    ("\ufeff\ufeff" + GOOD, "syntax", "two byte order marks", 1),
    ("# coding: rot13\n" + GOOD, "syntax", "line 1: it says that it is rot13", 1),
    ("\n# vim: set fileencoding=bogus :\n" + GOOD, "syntax", "it says that it is bogus", 2),
    ("\n# \ud800\n" + GOOD, "syntax", "line 2: there is half a character", 2),
    ("x = 1" + "0" * 5000, "syntax", "digits", 1),
    ("x = " + "(" * 9000, "syntax", "too many nested parentheses", 1),
    ("x = " + "-" * 60_000 + "1", "syntax", "line 1: nested too deeply", 1),
    # Python 3.13 compiles it, those before do not: what is valid is the same everywhere.
    (GOOD + "x = " + "not " * 3_100 + "1\n", "syntax", "line 3: nested too deeply", 3),
    ("y = (\n" + "z" + ".a" * 5_000 + "\n)\n" + GOOD, "syntax", "write it in smaller pieces", 2),
    ("", "structure", "no top-level function named 'grade'", None),
    ("async def score(t): ...", "structure", "rename 'score' to 'grade'", 1),
    ("def grade(thread): return 1", "structure", "must be 'async def'", 1),
    ("grade = lambda thread: 1", "structure", "'grade' is a lambda", 1),
    ("grade = 1", "structure", "not a function", 1),
    ("from math import sqrt as grade", "structure", "is imported", 1),
    ("class grade: ...", "structure", "is a class", 1),
    ("class A:\n    async def grade(self, t): ...", "structure", "in 'A'; move it", 2),
    ("if True:\n    async def grade(t): ...", "structure", "in a block; move it", 2),
    ("def f():\n    async def grade(t): ...", "structure", "in 'f'; move it", 2),
    (GOOD + GOOD, "structure", "defined twice, on lines 1 and 3", 3),
    (GOOD + "grade = 1\n", "structure", "line 3: 'grade' is set to something else", 3),
    (GOOD + "from math import sqrt as grade\n", "structure", "something else", 3),
    (GOOD + "for grade in (): ...\n", "structure", "something else", 3),
    (GOOD + "try: ...\nexcept ValueError as grade: ...\n", "structure", "use another name", 4),
    (GOOD + "match 3:\n  case grade: ...\n", "structure", "something else", 4),
    (GOOD + "match []:\n  case [*grade]: ...\n", "structure", "something else", 4),
    (GOOD + "match {}:\n  case {**grade}: ...\n", "structure", "something else", 4),
    (GOOD + "def f():\n    global grade\n    grade = 1\nf()\n", "structure", "something else", 4),
    (GOOD + "if True:\n    def grade(t): ...\n", "structure", "something else", 4),
    (GOOD + "if True:\n    from math import sqrt as grade\n", "structure", "something else", 4),
    ("try: ...\nexcept ValueError as grade: ...\n", "structure", "not a function", 2),
    ("@staticmethod\n" + GOOD, "structure", "decorated with @staticmethod", 2),
    (HEAD + "    yield 1.0\n", "structure", "line 2: 'grade' is a generator", 2),
    ("async def grade(): ...", "signature", "exactly one parameter, found 0", 1),
    ("async def grade(thread, k): ...", "signature", "found 2 (thread, k)", 1),
    ("async def grade(thread, *a, **k): ...", "signature", "found 3 (thread, a, k)", 1),
    ("async def grade(*thread): ...", "signature", "must be an ordinary one", 1),
    ("async def grade(*, thread): ...", "signature", "must be an ordinary one", 1),
    ("async def grade(thread=None): ...", "signature", "must not have a default", 1),
    (RETURN + "re.search('a', 'b')\n", "execution", "put 'import re' into the file", 2),
    (RETURN + "np.mean([1])\n", "execution", "if it is numpy", 2),
    (RETURN + "sqrt(4)\n", "execution", "put 'from math import sqrt'", 2),
    (RETURN + "helpr(4)\ndef helper(x): ...\n", "execution", "did you mean 'helper'?", 2),
    (RETURN + "exit()\n", "execution", "name 'exit' is not defined", 2),
    ("import numpy\n" + GOOD, "execution", "'numpy' is not in the standard library", 1),
    (HEAD + "    import requests\n    return 1.0\n", "execution", "external endpoint grader", 2),
    ("from . import x\n" + GOOD, "execution", "no package around the file", 1),
    ("from assay.text import exact_match\n" + GOOD, "execution", "'assay' is not", 1),
    ("from adaptive_harmony import Grade\n" + GOOD, "execution", "and no 'Grade'", 1),
    ("x = 1 / 0\n" + GOOD, "execution", "line 1: ZeroDivisionError", 1),
    ("import sys\nsys.exit(0)\n" + GOOD, "execution", "SystemExit", 2),
    (RETURN + "'1'\n", "test_run", "returned str", 2),
    (RETURN + "True\n", "test_run", "a bool is not a score: return 1.0 or 0.0", 2),
    (RETURN + "float('nan')\n", "test_run", "nan", 2),
    (RETURN + "10 ** 400\n", "test_run", "return a float between 0 and 1", 2),
    ("import decimal as d\n" + RETURN + "d.Decimal(1)\n", "test_run", "return float(...)", 3),
    (RETURN + "thread.metadata['k']\n", "test_run", "read metadata with .get()", 2),
    (HEAD + "    raise SystemExit\n", "test_run", "SystemExit", 2),
    # The line of what is no number, and the fix.
    (HEAD + "    if thread:\n        return\n    return 1.0\n", "test_run", "end every way", 3),
    (HEAD + "    thread.completion()\n", "test_run", "'return' and a float between 0 and 1", 1),
    (RETURN + "f()\nasync def f(): ...\n", "test_run", "put 'await' before the call", 2),
    (RETURN + "float('inf')\n", "test_run", "return a float between 0 and 1", 2),
    (RETURN + "[1]\n    return 1.0\n", "test_run", "return a float", 1),
    (RETURN + "1 / len(thread.metadata)\n", "test_run", "must return a number for every", 2),
]


@each(("source", "check", "words", "line"), REFUSED)
async def test_each_check_refuses_with_line_and_fix(
    source: str, check: str, words: str, line: int | None
) -> None:
    name, message, at = await failed(source)
    assert (name, at) == (check, line), message
    assert words in message
    assert check != "test_run" or message.startswith(f"line {line}: for the example thread")


ALLOWED = [
    GOOD + "x = " + "not " * 2_800 + "1\n",  # deep, but not too deep
    "# coding: U8\n" + GOOD,
    "#!/usr/bin/env python3\n# vim: set fileencoding=UTF8 :\n" + GOOD,
    "x = '# coding: latin-1'\n# coding: latin-1\n" + GOOD,
    "# coding: utf-8\n# coding: latin-1\n" + GOOD,
    "\ufeff" + GOOD,
    GOOD + "def f(grade):\n    return [grade for grade in (lambda grade: grade)(())]\n",
    "from __future__ import annotations\n" + HEAD + "    x: Missing = 1.0\n    return x\n",
    HEAD + "    x: Missing = 1.0\n    return x\n",
    "import re\nW = re.compile('a')\ndef f(): return len(W.findall('a'))\n"
    + HEAD
    + "    return f()\n",
    "try:\n    import numpy as np\nexcept ImportError:\n    np = None\n" + GOOD,
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n" + GOOD,
    "class A:\n    x = 1\n    y = [x for _ in (1,)] if False else x\n" + GOOD,
    "from adaptive_harmony import StringThread\n" + GOOD,
    "from assay import StringThread\nfrom assay.types import StringTurn\n" + GOOD,
    HEAD + "    global n\n    n = 1\n    return n\n",
    HEAD + "    return sum(len(t.content) for t in thread if (role := t.role) and role) / 1e6\n",
    HEAD + "    return len(thread['messages']) - 1 - len(thread.get('metadata'))\n",
    HEAD + "    inner = lambda: (yield)\n    def g():\n        yield 1.0\n    return next(g())\n",
]


WARNED: list[tuple[str, list[str]]] = [
    *((source, []) for source in ALLOWED),
    ("async def grade(t):\n    return 1.0\n", ["'t' is not annotated", "'-> float'"]),
    ("async def grade(t: str) -> int:\n    return 1\n", ["annotated str, not", "annotated int"]),
    ("async def grade(t: 'StringThread') -> 'float':\n    return 1\n", []),
    ("async def grade(t: StringThread) -> bool:\n    return 1\n", ["a bool is not a score"]),
    ("import urllib.request\n" + GOOD, ["line 1: 'urllib.request' will reach nothing"]),
    ("x = '\\d'\n" + GOOD, ["invalid escape sequence"]),
    ("from math import *\n" + HEAD + "    return sqrt(1)\n", ["line 3: name 'sqrt'"]),
    (HEAD + "    return -0.5\n", ["it returned -0.5, outside [0, 1]; declare its range"]),
    ("import time\n" + HEAD + "    return time.time() % 1\n", ["called again with the same"]),
]


@pytest.mark.slow
@pytest.mark.versions
@each(("source", "words"), WARNED)
async def test_what_runs_is_allowed_and_doubts_are_warnings(source: str, words: list[str]) -> None:
    report = await validate_function(source)
    assert report.valid, report.failed
    assert len(report.warnings) == len(words), report.warnings
    for warning, said in zip(report.warnings, words, strict=True):
        assert said in warning


async def test_size_is_checked_before_anything_is_read() -> None:
    fits = GOOD + "#" * (65_536 - len(GOOD) - 3) + "€"
    assert len(fits.encode()) == 65_536
    assert (await validate_function(fits)).valid
    name, message, line = await failed(fits + "#")
    assert (name, line) == ("size", 3)
    assert message.startswith("line 3: source: 65537 bytes; limit 65536, which ends here; make it")


@pytest.mark.slow
@pytest.mark.versions
@each(
    ("source", "words", "line"),
    [
        ("import re\nW = 1\nwhile True: ...\n" + GOOD, "it is not loaded after 0.5 s", 3),
        (GOOD + "x = 9**9**9**9\n", "it is not loaded after 0.5 s", 3),
        ("class A:\n    import os\n    os._exit(0)\n" + GOOD, "it ends the process", 1),
        (GOOD + "del globals()['grade']\n", "it defines no function 'grade'; write one", None),
    ],
)
async def test_what_kills_or_hangs_the_file_when_it_is_loaded_is_told_with_a_line_and_the_fix(
    source: str, words: str, line: int | None
) -> None:
    name, message, at = await failed(source, limits=IMPATIENT)
    assert name == "execution"
    assert words in message
    assert line is None or at == line
    assert f"line {at}: " in message
    assert "do it in 'grade'" in message or "write one" in message


@each(
    "attack",
    [
        "globals()['grade'] = lambda t: 1\n",
        "exec('async def grade(t): return 1')\n",
        "async def other(t): return 1.0\nglobals()['grade'] = other\n",
        "async def other(t): return 1.0\ngrade.__code__ = other.__code__\n",
        "import functools\nglobals()['grade'] = functools.partial(grade)\n",
        "any = all = isinstance = type = lambda *a: True\nglobals()['grade'] = lambda t: 1\n",
    ],
)
async def test_a_grade_replaced_after_its_async_def_is_refused(attack: str) -> None:
    """What is called is what was checked: not what the file puts in its place when it is loaded."""
    name, message, line = await failed(GOOD + attack)
    assert (name, line) == ("execution", 1), message
    assert "'grade' is not the 'async def' of the file" in message
    with pytest.raises(ProgramError, match="is not the 'async def' of the file"):
        await grade_functions(FunctionSource(text=GOOD + attack), SAMPLES)


async def test_a_byte_order_mark_is_dropped_and_another_encoding_is_not_run_as_utf8(
    tmp_path: Path,
) -> None:
    file = tmp_path / "grade.py"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    marked, read = FunctionSource(text="\ufeff" + GOOD), FunctionSource(text=read_source(str(file)))
    assert marked == read == FunctionSource(text=GOOD)
    assert marked.digest == FunctionSource(text=GOOD).digest
    (graded,) = await grade_functions(marked, SAMPLES[:1])
    assert graded.score == 1.0
    with pytest.raises(InputError, match="line 1 of the function's source says that it is rot13"):
        await grade_functions(FunctionSource(text="# coding: rot13\n" + GOOD), SAMPLES)


async def test_a_loop_on_the_example_ends_and_is_asked_nothing_more() -> None:
    """It was asked about every sample and every hollow answer, until the time was up."""
    samples = [(str(n), Submission(answer="a")) for n in range(3)]
    source = HEAD + "    while True: ...\n"
    report = await validate_function(source, samples=samples, limits=IMPATIENT)
    assert report.failed is not None
    assert report.failed.name == "test_run"
    assert "used up its CPU time, twice" in report.failed.message
    assert [one.outcome for one in report.samples] == ["no_time"] * 3


async def test_hostile_source_is_read_in_the_sandbox_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real: Any = compile

    def watched(source: Any, *rest: Any, **named: Any) -> Any:
        read.append(source.decode("utf-8", "replace") if isinstance(source, bytes) else str(source))
        return real(source, *rest, **named)  # modules that are loaded meanwhile need it, and pytest

    monkeypatch.setattr("builtins.compile", watched)
    assert (await validate_function(GOOD)).valid
    assert (await failed("x = (("))[0] == "syntax"
    compile("x = ((1))", "ours", "exec")
    assert [text for text in read if GOOD in text or "x = ((" in text] == ["x = ((1))"]


SAMPLES = [
    ("good", Submission(answer="4", question="2+2?", expected="4")),
    ("bad", Submission(answer="5", question="2+2?", expected="4")),
]
EXACT = HEAD + "    return float(thread.completion() == thread.metadata.get('expected'))\n"


async def test_samples_are_graded_one_by_one() -> None:
    report = await validate_function(EXACT, samples=SAMPLES)
    assert report.valid
    assert [(g.id, g.score) for g in report.samples] == [("good", 1.0), ("bad", 0.0)]
    unnamed = await validate_function(EXACT, samples=[s for _, s in SAMPLES])
    assert [g.id for g in unnamed.samples] == ["1", "2"]


async def test_an_error_for_a_real_sample_makes_a_function_invalid() -> None:
    """A grader that swallows nothing and fails on real data is known before it grades any."""
    source = HEAD + "    return 1.0 / (thread.completion() != '5')\n"
    report = await validate_function(source, samples=SAMPLES)
    assert not report.valid
    assert report.failed is not None
    assert "for sample 'bad': ZeroDivisionError" in report.failed.message
    assert [g.status for g in report.samples] == ["scored", "error"]


async def test_a_constant_is_pointed_out() -> None:
    """A function whose errors are swallowed gives everything the same: nobody saw it before."""
    source = (
        f"{HEAD}    try:\n        return thread.no\n    except Exception:\n        return 0.0\n"
    )
    report = await validate_function(source, samples=[*SAMPLES, *SAMPLES])
    assert report.valid
    assert report.warnings == ("all 4 samples got 0",)


async def test_what_a_sample_is_to_blame_for_is_a_warning() -> None:
    source = HEAD + "    while thread.completion() == '5': ...\n    return 1.0\n"
    samples = [*SAMPLES, ("empty", Submission())]
    report = await validate_function(source, samples=samples, limits=IMPATIENT)
    assert report.valid
    assert [(g.status, g.score, g.flags) for g in report.samples] == [
        ("scored", 1.0, ()),
        ("scored", 0.0, ("timed_out",)),
        ("error", None, ()),
    ]
    assert len(report.warnings) == 2


async def test_a_declared_range_is_held() -> None:
    source = HEAD + "    return -2.0\n"
    report = await validate_function(source, range=(-1.0, 1.0))
    assert report.failed is not None
    assert report.failed.name == "test_run"
    assert "outside its range [-1, 1]" in report.failed.message
    with pytest.raises(InputError, match="lower one first"):
        await validate_function(GOOD, range=(1.0, 0.0))


def test_the_examination_is_bounded_and_runs_nothing() -> None:
    warnings = "".join(f"import socket as s{n}\n" for n in range(200))
    found = examine(warnings + "import os\nos._exit(9)\n" + GOOD)
    assert found["failed"] is None
    assert len(json.dumps(found)) < 65_536
    long = examine("async def grade(" + ", ".join(f"a{n}" for n in range(9000)) + "): ...")
    assert len(json.dumps(long)) < 2_000


# --- Answers that say nothing ---------------------------------------------------------------------

READ = (
    "import json, math\n" + HEAD + "    try:\n        x = {}\n    except {}:\n        return 0.0\n"
)
PAID = "where an empty one gets 0;"
DOUBTS = [
    (READ.format("float(thread.completion())", "ValueError") + "    return min(1.0, x / 10)\n",
     PAID, ["Infinity gets 1"]),
    (READ.format("float(thread.completion())", "ValueError")
     + "    return 0.0 if abs(x - 4) > 1 else 1.0\n", PAID, ["NaN gets 1"]),
    (READ.format("list(json.loads(thread.completion()))", "(TypeError, ValueError, RecursionError)")
     + "    return float(all(1 <= n <= 9 for n in x if isinstance(n, int)))\n",
     PAID, ["[] gets 1", "{} gets 1", "[NaN] gets 1"]),
    (RETURN + "float('lamp' in (thread.completion() or '').split())\n",
     PAID, ["a list of all words gets 1"]),
    (HEAD + "    wanted = str(thread.metadata.get('capital', 'Paris'))\n"
     "    return float(wanted in (thread.completion() or ''))\n",
     PAID, ["a list of all words gets 1"]),
    (READ.format("float(json.loads(thread.completion()))", "(TypeError, ValueError)")
     + "    return float(math.isfinite(x) and x == 4)\n",
     "have no reward", ["400 digits (", "too large"]),
]  # fmt: skip


@each(("source", "doubt", "told"), DOUBTS)
async def test_attack_an_answer_that_says_nothing_is_paid_or_ends_in_an_error(
    source: str, doubt: str, told: list[str]
) -> None:
    report = await validate_function(source)
    assert report.valid, report.failed
    (warning,) = [one for one in report.warnings if doubt in one]
    for one in told:
        assert one in warning


async def test_what_a_sample_expects_is_no_answer_that_says_nothing() -> None:
    sample = Submission(answer="[]", expected="[]")
    assert (await validate_function(EXACT, samples=[sample])).warnings == ()
    source, sample = RETURN + "float(thread.completion() == '[]')\n", Submission(answer="7")
    (warning,) = (await validate_function(source, samples=[sample])).warnings
    assert "[] gets 1" in warning


async def test_a_conversation_is_kept_where_its_answer_is_another() -> None:
    source = HEAD + (
        "    if len(thread) != 2 or thread.metadata.get('goal') != 3:\n        return 0.0\n"
        "    return float(thread.completion() == 'Infinity')\n"
    )
    thread = StringThread([("user", "How many?"), ("assistant", "4")], {"goal": 3})
    report = await validate_function(source, samples=[Submission(thread=thread)])
    assert any("Infinity gets 1" in one for one in report.warnings)
