"""The list of attacks that a review reads is that of what is played."""

from __future__ import annotations

from tests.attacks.corpus import LIST, corpus


def test_the_list_of_attacks_is_the_one_that_is_played() -> None:
    listed, played = LIST.read_text("utf-8").splitlines(), corpus()
    gone, new = sorted({*listed} - {*played}), sorted({*played} - {*listed})
    assert not gone, "no longer played, or with another verdict"
    assert not new, "write the list: python -m tests.attacks.corpus > tests/attacks/corpus.txt"


def test_each_attack_has_a_name_of_its_own() -> None:
    names = [line.partition(": ")[0] for line in corpus()]
    assert len(names) == len({*names})
