"""How the votes of a panel make one verdict, number or error, whichever judge it is that votes."""

from __future__ import annotations

import pytest

from assay.errors import ModelError
from assay.graders.judges.panel import Opinion, Panel, Voter
from assay.graders.judges.votes import run_panel
from tests.each import each

WORTH = {"MET": 1.0, "UNMET": 0.0, "NA": None, "none": 0.0, "some": 0.5, "many": 1.0}
FAULT: dict[str, object] = {"is_fault": True}
Said = str | float | None


def opinion(said: Said) -> Opinion:
    """A verdict by its word, or a number; None where the question does not apply."""
    if said == "lost":
        raise ModelError("out of order", kind="overloaded")
    if isinstance(said, str):
        return Opinion(said, WORTH[said])
    return Opinion("", said)


ROWS: list[tuple[list[Said], dict[str, object], float | str | None]] = [
    # words
    (["MET", "UNMET", "MET"], {}, 1.0),
    (["MET", "UNMET"], {}, 0.0),
    (["MET", "UNMET"], {"tie": "na"}, None),
    (["MET", "UNMET"], {"tie": "error"}, "the judges are split: 1 for MET and 1 for UNMET"),
    # Attack: half a panel that says that it does not apply is no way out.
    *(
        (["NA", "UNMET"], {"aggregate": name}, 0.0)
        for name in ("majority", "mean", "median", "min")
    ),
    # Attack: a split forgives a fault.
    (["MET", "UNMET"], FAULT, 1.0),
    (["MET", "MET", "UNMET"], {"aggregate": "min", **FAULT}, 1.0),
    (["UNMET", "UNMET", "NA", "MET", "MET"], FAULT, 1.0),
    (["some", "none", "many"], {}, 0.0),
    (["some", "none", "many"], {"aggregate": "min"}, 0.0),
    (["some", "none", "many"], FAULT, 1.0),
    (["some", "none", "many"], {"aggregate": "min", **FAULT}, 1.0),
    (["MET", "MET", "UNMET"], {"aggregate": "mean", **FAULT}, 2 / 3),
    # numbers
    ([0.9, 0.6, 0.0], {}, 0.6),
    ([0.9, 0.6, 0.0], {"aggregate": "mean"}, 0.5),
    ([0.9, 0.6, 0.0], {"aggregate": "min"}, 0.0),
    ([0.0, None, None], {}, None),
    ([0.0, 0.0, None], {"tie": "error"}, 0.0),
    # Attack: an even split is no way out of a zero.
    ([0.0, None], {}, 0.0),
    ([0.0, None], {"tie": "na"}, None),
    ([0.0, None], {"tie": "error"}, "the judges are split: 1 of 2 say that it applies"),
    ([0.0, 0.0, None, None], {}, 0.0),
    ([None, None], {"tie": "error"}, None),
    # A panel does not shrink to those who answered.
    (["MET", "lost"], {}, "1 of 2 judges gave a verdict, and 2 decide: a: out of order"),
    (["MET", "lost", "lost"], {}, "1 of 3 judges gave a verdict, and 2 decide: a: out of order"),
    (["MET", "lost", "lost"], {"quorum": 1}, 1.0),
    (["MET", "MET", "lost"], {"quorum": 3}, "2 of 3 judges gave a verdict, and 3 decide"),
    (["MET", "MET", "lost"], {}, 1.0),
    ([1.0, "lost"], {"quorum": 1}, 1.0),
    (["lost", "lost"], {"quorum": 1}, "0 of 2 judges gave a verdict"),
]


@each(("votes", "options", "expected"), ROWS)
async def test_votes_come_to_a_value_a_skip_or_an_error(
    votes: list[Said], options: dict[str, object], expected: float | str | None
) -> None:
    async def judge(voter: Voter) -> Opinion:
        return opinion(votes[voter.repeat])

    panel = {"models": ("a",), "repeats": len(votes), **options}
    is_fault = bool(panel.pop("is_fault", False))
    found = await run_panel(Panel(**panel), judge, is_fault=is_fault)  # pyright: ignore[reportArgumentType] - of a table
    if isinstance(expected, str):
        assert found.error is not None
        assert str(found.error).startswith(expected)
    else:
        assert (found.error, found.value) == (
            None,
            None if expected is None else pytest.approx(expected),
        )
    assert len(found.votes) == len(votes)


@each(
    ("votes", "word", "agreement"),
    [(["MET", "UNMET", "MET"], "MET", 2 / 3), ([0.6, 0.5, 0.0], "", 2 / 3), (["MET"], "MET", 1.0)],
)
async def test_agreement_is_the_share_that_says_the_same(
    votes: list[Said], word: str, agreement: float
) -> None:
    async def judge(voter: Voter) -> Opinion:
        return opinion(votes[voter.repeat])

    found = await run_panel(Panel(models=("a",), repeats=len(votes)), judge)
    assert (found.word, found.agreement) == (word, pytest.approx(agreement))


@each(
    ("cheap", "strong", "value", "agreement"),
    [
        (["MET", "MET"], None, 1.0, 1.0),
        (["MET", "UNMET"], "UNMET", 0.0, 0.5),
        (["MET", "UNMET"], "MET", 1.0, 0.5),
        (["MET", "lost"], "MET", 1.0, None),
        (["UNMET"], None, 0.0, 1.0),
        ([0.0, 1.0], 0.5, 0.5, 0.0),
        ([0.9, 1.0], None, 0.95, 1.0),
    ],
)
async def test_a_strong_model_decides_alone_only_where_the_cheap_ones_disagree(
    cheap: list[Said], strong: Said, value: float, agreement: float | None
) -> None:
    async def judge(voter: Voter) -> Opinion:
        if voter.model == "cheap":
            return opinion(cheap[voter.repeat])
        assert strong is not None, "nobody needs it"
        return opinion(strong)

    panel = Panel(models=("cheap",), repeats=len(cheap), escalate="strong")
    found = await run_panel(panel, judge)
    assert (found.value, found.agreement) == (value, agreement)
    assert len(found.votes) == len(cheap) + (strong is not None)
