"""A contract of several runs is their union, whichever came first and however they were told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import SimpleNamespace
from typing import TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.graders.testing.contract import Contract, values_label
from assay.graders.testing.outcomes import TestRun

Needs: TypeAlias = Mapping[str, Sequence[str]]

_TESTS = st.sampled_from(["", "test_a.py::test_b", "test_a.py::TestX::test_b", "a.test.js"])
_TRAILS = st.sampled_from(["kit.add()", "kit.Money.parse()", "kit.run()<0>", "kit.of().x", "a:b"])
_KINDS = st.sampled_from(["object", "op:__sub__", "changes", "leaves", "empty", "nan", "known"])
_PLAIN = st.builds("{}:{}".format, _KINDS, _TRAILS) | st.just("files:") | st.just("environ:HOME")
_SAID = st.builds("said:{}:{}".format, st.sampled_from(["__eq__", "__lt__"]), _TRAILS)
_COUNTED = st.builds("{}:{}".format, _SAID, st.integers(0, 12))
_RUNS = st.lists(st.dictionaries(_TESTS, st.lists(_PLAIN | _COUNTED, max_size=6)), max_size=5)
_VARIANTS = st.lists(st.dictionaries(_TESTS, st.integers(1, 40)), max_size=4)


def _union(runs: Iterable[Needs]) -> Needs:
    return Contract.of_runs("5eed", runs).needs


def _told(runs: Iterable[Needs]) -> set[tuple[str, str]]:
    return {(test, entry) for run in runs for test, told in run.items() for entry in told}


@given(_RUNS)
def test_of_all_runs_every_entry_stands_and_of_what_was_said_the_largest_number(
    runs: list[Needs],
) -> None:
    expected, most = set[tuple[str, str]](), dict[tuple[str, str], int]()
    for test, entry in _told(runs):
        name, _, number = entry.rpartition(":")
        if entry.startswith("said:"):
            most[test, name] = max(int(number), most.get((test, name), 0))
        else:
            expected.add((test, entry))
    expected |= {(test, f"{name}:{number}") for (test, name), number in most.items()}
    found = _union(runs)
    assert [(test, one) for test, told in found.items() for one in told] == sorted(expected)
    assert all(found.values())
    assert _union([found, *runs]) == found


@given(_VARIANTS)
def test_the_most_variants_of_any_run_count(variants: list[dict[str, int]]) -> None:
    found = Contract.of_runs("5eed", [], variants).variants
    again = Contract.of_runs("5eed", [], [*variants[::-1], *variants]).variants
    assert found == again
    tests = {*chain.from_iterable(variants)}
    most = {test: max(run.get(test, 0) for run in variants) for test in tests}
    assert found == (most if variants else None)


@given(st.text("0123456789abcdef", max_size=16), _RUNS, _VARIANTS)
def test_a_contract_is_read_as_it_was_written(
    seed: str, runs: list[Needs], variants: list[dict[str, int]]
) -> None:
    contract = Contract.of_runs(seed, runs, variants)
    assert Contract.read(contract.to_json()) == contract
    assert Contract.read(json.loads(json.dumps(contract.to_json()))) == contract


def test_no_test_has_0_variants() -> None:
    with pytest.raises(InputError, match="cannot have 0 variants"):
        Contract.read({"variants": {"a::b": 0}})


def test_of_how_many_tests_a_value_is_compared_is_told_of_what_was_judged_apart() -> None:
    needs = {"test_a.py::test_b": ["object:kit.Money"], "a.test.js": ["op:__eq__:kit.f()"]}
    contract = Contract.of_runs("5eed", [needs])
    ids = ("test_a.py::test_b[1]", "test_a.py::test_c", "a.test.js::x", "b.test.js::x")
    run = SimpleNamespace(expected=ids, isolation="process")
    assert values_label(contract, cast("TestRun", run)) == {"values": "2 of 4 tests"}
    shared = SimpleNamespace(expected=ids, isolation="shared")
    assert values_label(contract, cast("TestRun", shared)) == {}
    for none in (Contract(seed="5eed", learns=True), None):
        assert values_label(none, cast("TestRun", run)) == {}
