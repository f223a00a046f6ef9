"""Prices: dated, with their gaps, and the user's own over them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.conversation.messages import Message, ReplyUsage, Request
from assay.conversation.protocols.anthropic import usage_of
from assay.errors import InputError
from assay.models import ModelClient, ModelEntry, ModelSettings, prices
from assay.models.prices import Price, Prices
from assay.scoring.json_safe import Json
from tests.each import each

USAGE = ReplyUsage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)

TABLE = Prices(
    {
        price.model: price
        for price in (
            Price(model="judge-5", input=2.0, cached_input=0.5, output=10.0),
            Price(model="judge-5-mini", input=0.2, cached_input=None, output=1.0),
            Price(model="judge-5-2025-01-01", input=4.0, cached_input=1.0, output=20.0),
            Price(model="http://127.0.0.1:8000/v1#*", input=0.0, cached_input=None, output=0.0),
            Price(
                model="long", input=1.0, cached_input=0.1, output=4.0,
                above=Price(tokens=200_000, input=2.0, cached_input=0.2, output=6.0),
            ),
        )
    }
)  # fmt: skip


@each(
    "model, cost",
    [
        ("judge-5", 0.6 * 2 + 0.4 * 0.5 + 0.1 * 10),
        ("openai:judge-5", 2.4),
        ("models/judge-5", 2.4),
        ("judge-5-2026-03-04", 2.4),
        ("judge-5-20260304", 2.4),
        ("judge-5@20260304", 2.4),
        ("judge-5-latest", 2.4),
        ("judge-5-0304", 2.4),
        # A snapshot with a price of its own; a model whose name begins like another's.
        ("judge-5-2025-01-01", 0.6 * 4 + 0.4 * 1 + 0.1 * 20),
        ("judge-5-mini", 1.0 * 0.2 + 0.1 * 1),
        ("judge-5-mini-2026-03-04", 0.3),
        ("long", 0.6 * 2 + 0.4 * 0.2 + 0.1 * 6),
        ("http://127.0.0.1:8000/v1#judge-5", 0.0),
        # Not known, and never free.
        ("judge-5-pro", None),
        ("judge-5-pro-2026-03-04", None),
        ("judge", None),
        ("judge-50", None),
        ("org/judge-5", None),
        ("http://127.0.0.1:9000/v1#judge-5", None),
        ("", None),
    ],
)
def test_a_cost_is_of_that_model_or_not_known(model: str, cost: float | None) -> None:
    assert TABLE.cost(model, USAGE) == pytest.approx(cost)
    assert TABLE.cost(model, USAGE) == pytest.approx(cost)


@each(
    "usage, cost, model",
    [
        (ReplyUsage(input_tokens=100_000, output_tokens=0), 0.2, "judge-5"),
        (ReplyUsage(input_tokens=100_000, output_tokens=100, cached_tokens=0), 0.201, "judge-5"),
        (ReplyUsage(input_tokens=100, cached_tokens=200, output_tokens=0), 0.00005, "judge-5"),
        (ReplyUsage(input_tokens=0, output_tokens=0), 0.0, "judge-5"),
        (ReplyUsage(input_tokens=100_000), None, "judge-5"),
        (ReplyUsage(output_tokens=100), None, "judge-5"),
        # A server that counts below nothing would make room in a budget.
        (ReplyUsage(input_tokens=-1_000_000, output_tokens=0), None, "judge-5"),
        (ReplyUsage(input_tokens=0, output_tokens=-1), None, "judge-5"),
        (ReplyUsage(input_tokens=100_000, cached_tokens=-100_000, output_tokens=0), 0.2, "judge-5"),
        (ReplyUsage(), None, "judge-5"),
        # A long request is dearer from its first token.
        (ReplyUsage(input_tokens=200_000, output_tokens=0), 0.2, "long"),
        (ReplyUsage(input_tokens=200_001, output_tokens=0), 0.400002, "long"),
    ],
)
def test_tokens_that_are_not_known_have_no_cost(
    usage: ReplyUsage, cost: float | None, model: str
) -> None:
    assert TABLE.cost(model, usage) == pytest.approx(cost)


READ = 500 * 2 + 100 * 0.5
HOUR: dict[str, Json] = {"cache_creation": {"ephemeral_1h_input_tokens": 400}}


@each(
    "kept, dollars",
    [
        ({}, READ),
        ({"cache_creation_input_tokens": 400}, READ + 400 * 2.5),
        (
            {
                "cache_creation_input_tokens": 400,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 100,
                    "ephemeral_1h_input_tokens": 300,
                },
            },
            READ + 100 * 2.5 + 300 * 4,
        ),
        (HOUR, READ + 400 * 4),
        # parts that are more than their sum, or less than nothing
        ({"cache_creation_input_tokens": 399, **HOUR}, READ + 399 * 4),
        ({"cache_creation": {"ephemeral_1h_input_tokens": -4}}, READ),
    ],
)
def test_what_anthropic_keeps_is_dearer_than_what_it_reads(
    kept: dict[str, Json], dollars: float
) -> None:
    usage = usage_of(
        {"input_tokens": 500, "cache_read_input_tokens": 100, "output_tokens": 0, **kept}
    )
    assert TABLE.cost("judge-5", usage) == pytest.approx(dollars / 1_000_000)


def test_a_model_asked_for_once_is_remembered_in_bounded_memory() -> None:
    for number in range(5_000):
        assert TABLE.price(f"unknown-{number}x") is None
    assert len(TABLE._found) <= 1_024


# --- Estimates -----------------------------------------------------------------------------------

REQUEST = Request(
    model="judge-5",
    messages=(Message("system", "be fair"), Message("user", "a word or two " * 100)),
    max_tokens=1_000,
)


def test_an_estimate_is_an_upper_bound() -> None:
    estimate = TABLE.estimate("judge-5", REQUEST)
    real = TABLE.cost("judge-5", ReplyUsage(input_tokens=410, output_tokens=1_000))
    assert estimate is not None
    assert real is not None
    assert real < estimate < 2 * real
    assert TABLE.estimate("unknown", REQUEST) is None


def longer(content: Any) -> Request:
    return replace(REQUEST, messages=(*REQUEST.messages, Message("user", content)))


@each(
    "larger",
    [
        replace(REQUEST, max_tokens=2_000),
        replace(REQUEST, schema={"type": "object", "description": "x" * 3_000}),
        longer("x" * 3_000),
        longer("\u6f22" * 1_000),
        longer("\ud800" * 3_000),
        longer(({"type": "text", "text": "x" * 3_000},)),
        longer(({"type": "image_url", "image_url": {}},)),
    ],
)
def test_whatever_is_sent_is_in_the_estimate(larger: Request) -> None:
    least, more = TABLE.estimate("judge-5", REQUEST), TABLE.estimate("judge-5", larger)
    assert least is not None
    assert more is not None
    # A thousand tokens at two or ten dollars a million.
    assert more - least >= 0.0019


# --- The table that comes with assay -------------------------------------------------------------


def test_the_table_says_where_it_is_from_and_every_row_is_a_price() -> None:
    document = json.loads(Path(prices.__file__).with_name("prices.json").read_text())
    assert re.match(r"genai-prices \d+\.\d+\.\d+, https://", document["source"])
    assert "Copyright (c) Pydantic Services Inc." in document["licence"]
    assert len(document["prices"]) > 200
    for row in document["prices"]:
        assert 0 < row["input"] <= row["output"] < 1_000, row
        assert 0 < row.get("cached_input", row["input"] / 2) <= row["input"], row
        if "above" in row:
            assert row["above"]["tokens"] >= 100_000
            assert row["above"]["input"] > row["input"]
    for family in ("claude-", "gpt-", "gemini-"):
        assert sum(row["model"].startswith(family) for row in document["prices"]) >= 5


def written(folder: Path, *rows: dict[str, Json], name: str = "prices.json") -> str:
    file = folder / name
    file.write_text(json.dumps({"prices": rows}), "utf-8")
    return str(file)


def test_a_price_holds_from_its_day_on(tmp_path: Path) -> None:
    first: dict[str, Json] = {"model": "judge", "input": 0.75, "output": 3}
    later: dict[str, Json] = {"model": "judge", "input": 1.5, "output": 6, "from": "2027-01-01"}
    file = written(tmp_path, first, later)
    usage = ReplyUsage(input_tokens=1_000_000, output_tokens=0)
    before = Prices.load(file, today="2026-12-31").cost("judge", usage)
    after = Prices.load(file, today="2027-01-01").cost("judge", usage)
    assert (before, after) == (0.75, 1.5)


# --- The user's own ------------------------------------------------------------------------------


def test_the_users_rows_go_over_the_table(tmp_path: Path) -> None:
    for name in ("prices.yaml", "prices.json"):
        file = written(
            tmp_path,
            {"model": "gpt-5.4-mini", "input": 1, "output": 2},
            {"model": "my-judge", "input": 0.5, "cached_input": 0, "output": 3},
            name=name,
        )
        table = Prices.load(file, today="2026-11-21")
        assert table.cost("openai:gpt-5.4-mini", USAGE) == pytest.approx(1 + 0.2)
        assert table.cost("my-judge", USAGE) == pytest.approx(0.3 + 0.3)
        assert table.cost("claude-opus-5", USAGE) is not None


@each(
    ("text", "complaint"),
    [
        ("", "prices: a file of prices has one list"),
        ("[]", "one list"),
        ("prices: {a: 1}", "one list"),
        ("prices: [1]", r"prices\[0\]: expected a mapping"),
        ("prices: [{model: a, inputs: 1, output: 2}]", r"\[0\]\.inputs: unknown field 'inputs'"),
        ("prices: [{input: 1, output: 2}]", "the name of its model"),
        ("prices: [{model: a, output: 2}]", r"prices\[0\]\.input: "),
        ("prices: [{model: a, input: 1}]", r"prices\[0\]\.output: "),
        *(
            (f"prices: [{{model: a, input: {wrong}, output: 2}}]", r"prices\[0\]\.input: ")
            for wrong in ("-1", ".nan", ".inf", "true", "'1'")
        ),
        ("prices: [{model: a, input: 1, output: 2, cached_input: x}]", r"\[0\]\.cached_input: "),
        ("prices: [{model: a, input: 1, output: 2, above: {input: 2}}]", r"\[0\]\.above\.output"),
        (
            "prices: [{model: a, input: 1, output: 2, above: {input: 2, output: 3}}]",
            "'above' needs 'tokens' and prices",
        ),
        ("prices: [", "cannot be read"),
        ("!!python/object/apply:os.system [id]", "cannot be read"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        Prices.load(str(file))
    assert "prices.yaml" in str(caught.value)
    with pytest.raises(InputError, match=r"none\.yaml"):
        Prices.load(str(tmp_path / "none.yaml"))


def test_a_row_of_ones_own_for_the_endpoints_model_is_used(tmp_path: Path) -> None:
    file = written(tmp_path, {"model": "my-model", "input": 1, "output": 2})
    entry = ModelEntry(base_url="http://127.0.0.1:9/v1", model="my-model")
    client = ModelClient(ModelSettings(prices_file=file, endpoints={"fj": entry}))
    assert client.route("fj").priced == "my-model"
    assert client.route("http://127.0.0.1:8/v1#my-model").priced == "my-model"
    # What comes with assay is what a provider takes, and nobody else.
    elsewhere = "http://127.0.0.1:8/v1#claude-haiku-4-5"
    assert client.route(elsewhere).priced == elsewhere
