"""``--range`` is one option in two commands, in either spelling."""

from __future__ import annotations

import pytest

from assay.cli.main import parse

_COMMANDS = [
    (("grade", "rows.jsonl", "--function", "f.py"), "range"),
    (("serve", "grader", "f.py"), "score_range"),
]
_SPELLINGS = [
    (("--range", "0,1"), (0.0, 1.0)),
    (("--range", "0", "1"), (0.0, 1.0)),
    (("--range=0,1",), (0.0, 1.0)),
    (("--range", "-1,1"), (-1.0, 1.0)),
    (("--range", "-1", "1"), (-1.0, 1.0)),
    (("--range", "-2", "-1"), (-2.0, -1.0)),
    (("--range=-1,1",), (-1.0, 1.0)),
    (("--range", "-.5,1e3"), (-0.5, 1000.0)),
]


@pytest.mark.parametrize(("command", "name"), _COMMANDS)
@pytest.mark.parametrize(("spelling", "meant"), _SPELLINGS)
def test_both_spellings_are_taken(
    command: tuple[str, ...], name: str, spelling: tuple[str, ...], meant: tuple[float, float]
) -> None:
    given = parse([*command, *spelling])
    assert tuple(getattr(given, name)) == meant


def test_it_takes_no_file_for_a_number() -> None:
    given = parse(["serve", "grader", "--range", "0,1", "2.py"])
    assert (given.grader, given.score_range) == ("2.py", (0.0, 1.0))


@pytest.mark.parametrize(
    "spelling", [("1", "0"), ("0,1,2",), ("x",), ("nan,1",), ("0", "inf"), ("1,1",), ("5",), ()]
)
@pytest.mark.parametrize(("command", "name"), _COMMANDS)
def test_what_is_no_range_is_refused(
    command: tuple[str, ...],
    name: str,
    spelling: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    del name
    with pytest.raises(SystemExit) as refused:
        parse([*command, "--range", *spelling])
    assert refused.value.code == 2
    assert "--range" in capsys.readouterr().err
