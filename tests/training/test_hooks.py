"""The hooks, called as their trainers call them; `tests/real/test_training.py` has the trainers."""

from __future__ import annotations

import asyncio
import pickle
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, BinaryIO, cast

import numpy as np
import pytest

from assay.errors import GraderError, InputError
from assay.graders.spec import GraderSpec
from assay.training import Reward, openrlhf, skyrl, slime, tinker, trl, verifiers, verl
from assay.types import StringThread
from tests.each import each
from tests.pictures import png

EXACT = GraderSpec(type="exact_match")
CHAT = [{"role": "user", "content": "2+2?"}]


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of it as OpenRLHF's hook asks of it."""
    module = ModuleType("torch")
    vars(module)["tensor"] = list
    monkeypatch.setitem(sys.modules, "torch", module)


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


class Logged:
    """What a trainer is told to log."""

    def __init__(self) -> None:
        self.columns: dict[str, list[object]] = {}
        self.metrics: dict[str, float] = {}

    def extra(self, name: str, values: list[object]) -> None:
        self.columns[name] = values

    def metric(self, name: str, value: float) -> None:
        self.metrics[name] = value


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("form", ["text", "chat"])
def test_trl_is_given_rewards_none_and_what_to_log(*, asynchronous: bool, form: str) -> None:
    reward = trl.reward_function(
        [EXACT, GraderSpec(type="exact_match", name="five", options={"expected": "5"})],
        expected="solution",
        asynchronous=asynchronous,
        name="mine",
    )
    logged = Logged()
    texts = ["4", "5", "4"]
    called: dict[str, Any] = {
        "prompts": ["2+2?"] * 3 if form == "text" else [CHAT] * 3,
        "completions": texts if form == "text" else [_said(text) for text in texts],
        "completion_ids": [[1]] * 3,
        "solution": ["4", "4", None],
        "trainer_state": object(),
        "log_extra": logged.extra,
        "log_metric": logged.metric,
    }
    reward = pickle.loads(pickle.dumps(reward))  # as a trainer that spawns its scorer does
    found = reward(**called)
    rewards = asyncio.run(found) if asynchronous else found
    assert reward.__name__ == "mine"
    assert rewards == [0.5, 0.5, None]
    assert logged.columns["mine/five"] == [0.0, 1.0, 0.0]
    assert [bool(error) for error in logged.columns["mine/error"]] == [False, False, True]
    assert logged.metrics["mine/error_rate"] == pytest.approx(1 / 3)
    assert logged.metrics["mine/five"] == pytest.approx(1 / 3)
    assert logged.metrics["mine/exact_match"] == 0.5  # of the two that have it


def test_what_cannot_be_read_costs_no_sibling_its_reward() -> None:
    """A reference answer that is no JSON, or a missing completion, ended the whole training."""
    reward = trl.reward_function(EXACT, expected="right")
    completions: list[Any] = ["4", "4", None]
    found = reward(completions=completions, right=["4", float("inf"), "4"])
    assert found == [1.0, None, None]
    samples = [Sample("4", "4"), Sample("4", object())]
    assert asyncio.run(_any(slime.reward_function(EXACT)(None, samples))) == [1.0, 1.0]
    assert [sample.remove_sample for sample in samples] == [False, True]
    score = verl.reward_function(EXACT, on_error="zero")
    assert asyncio.run(_any(score("sums", "4", float("inf"))))["graded"] == 0.0
    both = openrlhf.reward_function(EXACT, on_error="zero")(["4", "4"], ["", ""], ["4", object()])
    assert both["extra_logs"] == {"graded": [1.0, 0.0]}


def test_attack_a_malformed_row_ends_no_training() -> None:
    """Whatever a trainer hands over for one sample, it alone has no reward."""
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(100_000):
        inner["a"] = inner = {}
    reward = trl.reward_function(EXACT, expected="right")
    for odd in (4, b"4", ["4"], [None], [{"from": "gpt", "value": "4"}], float("nan")):
        assert reward(completions=[cast("Any", odd), "4"], right=["4"] * 2) == [None, 1.0]
        assert reward(["4", "4"], prompts=[cast("Any", odd), ""], right=["4"] * 2) == [None, 1.0]
    assert reward(["4", "4"], right=["4", "4"], info=[deep, 1]) == [None, 1.0]
    assert reward(["4", "4"], right=[deep, "4"]) == [None, 1.0]
    samples = [Sample("4", "4"), Sample("4", "4")]
    samples[0].prompt = cast("Any", [None])
    asyncio.run(_any(slime.reward_function(EXACT)(None, samples)))
    assert [sample.remove_sample for sample in samples] == [True, False]
    score = verl.reward_function(EXACT, on_error="zero")
    for extra in (["a"], "text", deep):
        assert asyncio.run(_any(score("sums", "4", "4", extra)))["graded"] == 0.0
    found = openrlhf.reward_function(EXACT, on_error="zero")(["4", 4], ["", ""], ["4", "4"])
    assert found["extra_logs"] == {"graded": [1.0, 0.0]}


def test_attack_an_unknown_speakers_right_answer_is_no_zero() -> None:
    """Templates call the model ``model`` or ``Assistant``: its answers were 0 without a word."""
    reward = trl.reward_function(EXACT, expected="right")
    logged = Logged()
    for role in ("model", "Assistant"):
        said = [[{"role": role, "content": "4"}]]
        assert reward(said, right=["4"], log_extra=logged.extra) == [None]
        assert repr(role) in str(logged.columns["exact_match/error"])
    alone = cast("Any", {"role": "assistant", "content": "4"})  # not in a list
    assert reward([alone], right=["4"]) == [1.0]
    assert reward([[{"role": "assistant", "content": 0}]], right=["0"]) == [1.0]


def test_columns_of_other_lengths_are_none_and_arrays_are_columns() -> None:
    """They were an IndexError, or the reference of another sample."""
    pd = pytest.importorskip("pandas")
    reward = trl.reward_function(EXACT, expected="right")
    said = ["4", "5"]
    for right in (("4", "4"), np.array(["4", "4"]), pd.Series(["4", "4"], index=[7, 9])):
        asked = cast("Any", np.array(["", ""]))
        assert reward(said, prompts=asked, right=right) == [1.0, 0.0]
    assert reward(said, right=["4", "4"], tools=["one"], self=["a", "b"]) == [1.0, 0.0]
    for right in (["4"], ["4", "4", "4"], "44"):
        with pytest.raises(InputError, match=r"no column 'right' with a value for each of the 2"):
            reward(said, right=right)
    with pytest.raises(InputError, match=r"no column 'right'.*expected= names one of wrong"):
        reward(said, wrong=["4", "4"])
    with pytest.raises(InputError, match="1 prompts for 2 completions"):
        reward(said, prompts=["a"], right=["4", "4"])
    with pytest.raises(InputError, match="1 labels for 2 queries"):  # there was one reward then
        openrlhf.reward_function(EXACT)(said, ["", ""], ["4"])


def test_attack_a_tools_words_are_not_graded_as_the_models() -> None:
    """A completion that ends with what a tool said has no answer."""
    tool = [*_said(""), {"role": "tool", "content": "4"}]
    later = [*tool, *_said("4")]
    reward = trl.reward_function(EXACT, expected="right")
    assert reward(prompts=[CHAT] * 2, completions=[tool, later], right=["4", "4"]) == [0.0, 1.0]


def _asked(on_error: Any) -> list[dict[str, float]]:
    score = verl.reward_function(EXACT, on_error=on_error)

    async def ask() -> list[dict[str, float]]:
        asked: dict[str, Any] = {"data_source": "sums", "solution_str": "4", "extra_info": {"n": 1}}
        return [await score(**asked, ground_truth=truth) for truth in ("4", "5", None)]

    return asyncio.run(ask())


def test_verl_is_given_the_same_keys_for_every_sample() -> None:
    found = _asked("zero")
    assert all({*one} == {"score", "graded", "flagged", "seconds"} for one in found)
    assert [(one["score"], one["graded"]) for one in found] == [(1.0, 1.0), (0.0, 1.0), (0.0, 0.0)]
    with pytest.raises(GraderError, match="1 of 1 answers have no reward"):
        _asked("raise")
    with pytest.raises(InputError, match="not groups"):
        verl.reward_function(EXACT, on_error="group_mean")


def test_openrlhf_is_given_the_answer_without_its_prompt() -> None:
    reward = openrlhf.reward_function(EXACT, on_error="zero")
    found = reward(["2+2=4", "2+2=5", "2+2=4"], ["2+2="] * 3, ["4", "4", None], extra=1)
    assert (found["rewards"], found["scores"]) == ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    assert found["extra_logs"] == {"graded": [1.0, 1.0, 0.0]}
    with pytest.raises(GraderError):
        openrlhf.reward_function(EXACT)(["4"], [""], [None])
    # Its queries are decoded with special tokens, which nobody said.
    special = reward(["<s>2+2=4</s>", "2+2=4<|im_end|>\n", "4"], ["2+2="] * 3, ["4"] * 3)
    assert special["rewards"] == [1.0, 1.0, 0.0]
    assert special["extra_logs"] == {"graded": [1.0, 1.0, 0.0]}  # the last had another prompt


@dataclass
class Sample:
    """The fields of slime's that matter."""

    response: str
    label: object
    prompt: Any = "2+2="
    metadata: object = field(default_factory=dict[str, object])
    remove_sample: bool = False


def test_skyrl_logs_what_was_graded_and_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """SkyRL logs `get_metrics` alone: without it zeros that are no grades were not to be seen."""
    module = ModuleType("skyrl_gym.envs.base_text_env")
    vars(module)["BaseTextEnv"] = object
    monkeypatch.setitem(sys.modules, module.__name__, module)
    told: list[dict[str, float]] = []
    graders = [EXACT, GraderSpec(type="contains", name="four", options={"substring": "4"})]
    graded = skyrl.environment(graders, on_error="zero")
    for truth in ("4", None):
        env: Any = graded({}, {"reward_spec": {"ground_truth": truth}})
        env.init(CHAT)
        env.step("4")
        told.append(env.get_metrics())
    assert [one["graded"] for one in told] == [1.0, 0.0]
    assert (told[0]["part/exact_match"], told[1]["part/four"]) == (1.0, 1.0)
    raising: Any = skyrl.environment(EXACT)({}, {})
    with pytest.raises(GraderError, match="needs 'expected'"):
        raising.step("4")
    assert raising.get_metrics()["graded"] == 0.0


def test_a_trainer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("skyrl_gym", "tinker_cookbook"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match="skyrl-gym is not installed"):
        skyrl.environment(EXACT)
    with pytest.raises(InputError, match="tinker-cookbook is not installed"):
        tinker.problem_groups(EXACT, renderer=cast("Any", None))("2+2?")


def test_slimes_group_is_not_moved_by_what_cannot_be_graded() -> None:
    samples = [Sample("4", "4"), Sample("5", "4", CHAT), Sample("4", None)]
    reward = slime.reward_function(EXACT)
    assert asyncio.run(_any(reward(None, samples))) == [1.0, 0.0, 0.5]
    assert [sample.remove_sample for sample in samples] == [False, False, True]
    # Evaluations, and training without --group-rm, hand over single samples.
    assert asyncio.run(_any(reward(None, samples[0]))) == 1.0
    with pytest.raises(GraderError):
        asyncio.run(_any(reward(None, samples[2])))


async def _any(awaited: Any) -> Any:
    return await awaited


def test_a_conversation_of_verifiers_and_of_slime_ends_with_what_was_said() -> None:
    def seen(thread: Any, question: str, answer: str, expected: str = "4") -> float:
        turns = [(turn.role, turn.content) for turn in thread.turns]
        assert turns == [("user", "2+2?"), ("assistant", "4")]
        return float((question, answer, expected) == ("2+2?", "4", "4"))

    trace = SimpleNamespace(messages=[SimpleNamespace(**one) for one in [*CHAT, *_said("4")]])
    assert asyncio.run(_any(verifiers.reward_function(seen)({"answer": "4"}, trace))) == 1.0
    assert asyncio.run(_any(slime.reward_function(seen)(None, Sample("4", None, CHAT)))) == 1.0


def test_a_misspelt_on_error_is_refused_and_makes_no_zeros() -> None:
    """By a hook when it is made, and by a batch."""
    batch = Reward(EXACT).grade_now([{"answer": "x"}])
    assert batch.rewards == [None]
    with pytest.raises(InputError, match="on_error is 'mean'"):
        batch.filled("mean")  # pyright: ignore[reportArgumentType]
    groups: Any = partial(tinker.problem_groups, renderer=None)
    made: list[Any] = [one.reward_function for one in (openrlhf, slime, verl)]
    for make in [*made, groups]:
        with pytest.raises(InputError, match="on_error is 'zeros'"):
            make(EXACT, on_error="zeros")


TYPED: list[tuple[object, str, float]] = [
    (np.array(["4", "5"]), "5", 1.0),  # as tables are read, a list of answers is an array
    (np.int64(5), "5", 1.0),
    (np.str_("x" * 5_000), "x" * 5_000, 1.0),
    (np.float32(0.5), "0.5", 1.0),
    (Decimal("0.50"), "0.50", 1.0),
]


@each("truth, said, score", TYPED)
def test_an_honest_answer_gets_no_zero_for_the_type_of_its_reference(
    truth: object, said: str, score: float
) -> None:
    assert asyncio.run(_any(verl.reward_function(EXACT)("data", said, truth, {})))["score"] == score
    reward = trl.reward_function(EXACT, expected="solution")
    assert reward([said], solution=[truth]) == [score]


def test_words_in_parts_are_the_words_that_are_graded() -> None:
    reward = trl.reward_function(EXACT, expected="solution")
    parts = [{"type": "image"}, {"type": "text", "text": "4"}]
    for content in (parts, parts[1]):
        assert reward([[{"role": "assistant", "content": content}]], solution=["4"]) == [1.0]
    called = [{"role": "assistant", "content": [], "tool_calls": [{"name": "add"}]}]
    assert reward([called], solution=['[{"name": "add"}]']) == [1.0]
    said = SimpleNamespace(role="assistant", content=[SimpleNamespace(text="4")])
    trace = SimpleNamespace(messages=[said])
    task = SimpleNamespace(data={"answer": "4"})
    assert asyncio.run(_any(verifiers.reward_function(EXACT)(task, trace))) == 1.0


class Drawn:
    """As much of a picture of Pillow's as is asked of one."""

    def getbands(self) -> tuple[str, ...]:
        return ("R", "G", "B")

    def save(self, file: BinaryIO, form: str) -> None:
        assert form == "PNG"
        file.write(png())


def test_a_prompts_pictures_reach_the_reward_where_they_are_named() -> None:
    """As Pillow's, as bytes or as a dataset has them; a broken one is no reward and no 0."""

    def seen(thread: StringThread) -> float:
        return len(thread.images()) / 2

    prompts = [[{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "?"}]}]]
    said = [[{"role": "assistant", "content": "red"}]]
    columns: dict[str, Any] = {"pictures": [[Drawn(), {"bytes": png(), "path": None}]]}
    looking = trl.reward_function(seen, images="pictures")
    assert looking(prompts=prompts, completions=said, **columns) == [1.0]
    assert looking(prompts=prompts, completions=said, pictures=[b"no picture"]) == [None]
    blind = trl.reward_function(seen)
    assert blind(prompts=prompts, completions=said, **columns) == [0.0]
    with pytest.raises(InputError, match="images= names one of pictures"):
        trl.reward_function(seen, images="image")(prompts=prompts, completions=said, **columns)


def test_a_row_of_a_batch_has_pictures_as_python_holds_them() -> None:
    """Bytes and Pillow's, in the field of rows or in a message."""

    def seen(thread: StringThread) -> float:
        return len(thread.images()) / 2

    part = {"type": "image", "image": Drawn()}
    rows: list[Any] = [
        {"answer": "red", "question": "?", "images": [png(), Drawn()]},
        {"messages": [{"role": "user", "content": [part]}], "completion": "red"},
        {"answer": "red", "images": [object()]},
    ]
    batch = Reward(seen).grade_now(rows)
    assert batch.rewards == [1.0, 0.5, None]
    assert "images[0]" in batch.graded[2].error
