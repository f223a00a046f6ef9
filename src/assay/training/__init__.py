"""Graders as the rewards of trainers.

`Reward` grades batches from wherever a trainer asks; each trainer's hook is a file beside it. No
trainer is imported but by its own hook, when that is used.
"""

from __future__ import annotations

from assay.training.reward import Batch, Reward

__all__ = ["Batch", "Reward"]
