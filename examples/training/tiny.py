"""A tokenizer and a model that are made in a moment: characters, and two layers.

They stand for a real model, so that the other examples need no GPU, no network and no download.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_PLAIN = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def tokenizer(*, tools: bool = False) -> PreTrainedTokenizerFast:
    """One token for each character; with tools, the chat template of Qwen 3, which TRL brings."""
    special = ["<pad>", "<|im_end|>" if tools else "<eos>", "<unk>", "<|im_start|>"]
    letters = [*map(chr, range(32, 127)), "\n"]
    vocabulary = {token: number for number, token in enumerate([*special, *letters])}
    whole = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    whole.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="<pad>", eos_token=special[1], unk_token="<unk>"
    )
    made.chat_template = _PLAIN
    if tools:
        import trl

        made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
        template = Path(trl.__file__).parent / "chat_templates" / "qwen3_instruct_2507.jinja"
        made.chat_template = template.read_text()
    return made


def model(words: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A model that has learnt nothing."""
    return LlamaForCausalLM(_config(words))


def scripted(words: PreTrainedTokenizerFast, script: Callable[[str, int], str]) -> LlamaForCausalLM:
    """One that says what a script says, given the text before it and its number in the batch.

    Nothing else of it differs: a trainer computes its loss, and changes its weights.
    """

    class Scripted(LlamaForCausalLM):
        def generate(self, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
            before = words.batch_decode(input_ids)
            said = [script(text, n) + words.eos_token for n, text in enumerate(before)]
            ids = words(said, padding=True, padding_side="right", return_tensors="pt")["input_ids"]
            return torch.cat([input_ids, ids], dim=1)

    return Scripted(_config(words))


def _config(words: PreTrainedTokenizerFast) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
