"""A trainer's own reward path over rows, with a bare function and with assay's; in its package.

``python trainer_rewards.py TRAINER ROWS DIRECTORY`` reads a road a line and says what it cost.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

_STEP = 1_024
_CORES = len(os.sched_getaffinity(0))
_TICK = os.sysconf("SC_CLK_TCK")

Rows = Sequence[dict[str, str]]
Road = Callable[[int | None], Sequence[float]]
"""Does so many steps, or all, and gives the rewards."""


def tree_cpu(root: int) -> float:
    """CPU seconds of a process, its descendants, and those of theirs that were waited for."""
    used: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        used[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / _TICK
    found, todo = 0.0, [root]
    while todo:
        parent = todo.pop()
        found += used[parent][1]
        todo += [pid for pid, (above, _) in used.items() if above == parent]
    return found


def serve(roads: dict[str, Road], replies: IO[str]) -> None:
    """Measure a road for each line of standard input."""
    replies.write("ready\n")
    replies.flush()
    for line in sys.stdin:
        roads[line.strip()](1)
        cpu, began = tree_cpu(os.getpid()), time.perf_counter()
        rewards = roads[line.strip()](None)
        wall = time.perf_counter() - began
        cost = {"cpu": tree_cpu(os.getpid()) - cpu, "wall": wall, "sum": round(sum(rewards), 3)}
        replies.write(json.dumps(cost) + "\n")
        replies.flush()


def tokenizer(rows: Rows) -> Any:  # noqa: ANN401 - of a package that assay does not have
    """One that has learnt from some of the rows: a token is a few characters, as with a model's."""
    tokenizers: Any = importlib.import_module("tokenizers")
    transformers: Any = importlib.import_module("transformers")
    special = ["<pad>", "<eos>", "<unk>"]
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    learning = tokenizers.trainers.BpeTrainer(
        vocab_size=2_000,
        special_tokens=special,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator([row["answer"] for row in rows[:200]], learning)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def trl_roads(rows: Rows, place: Path) -> dict[str, Road]:
    """`GRPOTrainer._calculate_rewards`, a step after the other, of a trainer with a tiny model."""
    trl: Any = importlib.import_module("trl")
    datasets: Any = importlib.import_module("datasets")
    transformers: Any = importlib.import_module("transformers")
    from assay.graders import FunctionGrader
    from assay.training.trl import reward_function

    words = tokenizer(rows)
    shape: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(
        vocab_size=len(words), num_attention_heads=1, num_key_value_heads=1, **shape
    )
    settings: dict[str, Any] = {"report_to": [], "use_cpu": True, "bf16": False, "beta": 0.0}

    def road(reward: Callable[..., Any]) -> Road:
        trainer = trl.GRPOTrainer(
            model=transformers.LlamaForCausalLM(config),
            reward_funcs=[reward],
            args=trl.GRPOConfig(output_dir=str(place / "trl"), **settings),
            train_dataset=datasets.Dataset.from_dict({"prompt": ["?"]}),
            processing_class=words,
        )

        calculate: Callable[..., Any] = getattr(trainer, "_calculate_rewards")  # noqa: B009 - its own

        def steps(count: int | None) -> list[float]:
            found: list[float] = []
            for start in range(0, len(rows), _STEP)[:count]:
                part = rows[start : start + _STEP]
                inputs = [{"prompt": one["question"], "expected": one["expected"]} for one in part]
                prompts, said = [one["question"] for one in part], [one["answer"] for one in part]
                given = calculate(inputs, prompts, said, [[0]] * len(part))
                found += given[:, 0].tolist()
            return found

        return steps

    roads: dict[str, Road] = {}
    for name in ("honest", "trivial"):
        score = importlib.import_module(name).score

        def bare(
            completions: list[str],
            expected: list[str],
            score: Callable[[str, str], float] = score,
            **_: object,
        ) -> list[float]:
            return [score(*pair) for pair in zip(completions, expected, strict=True)]

        roads[f"{name} bare"] = road(bare)
        for isolation in ("call", "batch"):
            grader = FunctionGrader(file=str(place / f"{name}.py"), isolation=isolation)
            ours = reward_function(grader, expected="expected", name=f"{name} {isolation}")
            roads[f"{name} {isolation}"] = road(ours)
    return roads


def verl_roads(rows: Rows, place: Path) -> dict[str, Road]:
    """`RewardLoopWorker.compute_score_batch` with the manager ``naive``: a worker on each core."""
    ray: Any = importlib.import_module("ray")
    torch: Any = importlib.import_module("torch")
    numpy: Any = importlib.import_module("numpy")
    omega: Any = importlib.import_module("omegaconf")
    verl: Any = importlib.import_module("verl")
    loop: Any = importlib.import_module("verl.experimental.reward_loop.reward_loop")
    ray.init(num_cpus=_CORES, include_dashboard=False, object_store_memory=200_000_000)
    words = tokenizer(rows)
    words.save_pretrained(place / "words")

    def data(part: Rows) -> Any:  # noqa: ANN401 - a DataProto
        said = [words(row["answer"])["input_ids"] for row in part]
        longest = max(map(len, said))
        responses = [one + [0] * (longest - len(one)) for one in said]
        mask = [[1] * (1 + len(one)) + [0] * (longest - len(one)) for one in said]
        tensors = {"prompts": torch.zeros((len(part), 1), dtype=torch.long)}
        tensors["responses"] = torch.tensor(responses)
        tensors["attention_mask"] = torch.tensor(mask)
        others = {
            "data_source": ["rows"] * len(part),
            "reward_model": [{"style": "rule", "ground_truth": row["expected"]} for row in part],
            "extra_info": [{"index": number} for number in range(len(part))],
        }
        return verl.DataProto.from_dict(
            tensors=tensors,
            non_tensors={name: numpy.array(each, dtype=object) for name, each in others.items()},
        )

    steps = [data(rows[start : start + _STEP]) for start in range(0, len(rows), _STEP)]

    def road(file: str, name: str) -> Road:
        reward: dict[str, Any] = {
            "num_workers": _CORES,
            "custom_reward_function": {"path": str(place / file), "name": name},
            "reward_manager": {"source": "register", "name": "naive", "module": {}},
            "reward_model": {"enable": False},
        }
        model = {"path": str(place / "words"), "tokenizer_path": None}
        config = omega.OmegaConf.create({"actor_rollout_ref": {"model": model}, "reward": reward})
        made: Any = ray.remote(loop.RewardLoopWorker)
        held: list[Any] = []

        def all_steps(count: int | None) -> list[float]:
            if not held:
                held.extend(made.remote(config, None) for _ in range(_CORES))
            found: list[float] = []
            for step in steps[:count]:
                parts = zip(held, step.chunk(_CORES), strict=True)
                asked = [worker.compute_score_batch.remote(part) for worker, part in parts]
                found += [one["reward_score"] for given in ray.get(asked) for one in given]
            return found

        return all_steps

    return {f"{name} bare": road(f"{name}.py", "compute_score") for name in ("honest", "trivial")}


def main(trainer: str, data: str, place: str) -> None:
    """Be a trainer's process until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a package prints is no reply
    sys.path.insert(0, place)
    with Path(data).open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    roads = {"trl": trl_roads, "verl": verl_roads}[trainer](rows, Path(place))
    asyncio.set_event_loop(asyncio.new_event_loop())
    serve(roads, replies)


if __name__ == "__main__":
    main(*sys.argv[1:])
