"""A tokenizer and a model that are made in a moment: characters, and two layers."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_SPECIAL = ["<pad>", "<eos>", "<unk>"]
_CHAT = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    letters = [*map(chr, range(32, 127)), "\n"]
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *letters])}
    whole = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    whole.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    made.chat_template = _CHAT
    return made


def model(size: int) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=size,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=256,
            bos_token_id=None,
            eos_token_id=1,
            pad_token_id=0,
        )
    )
