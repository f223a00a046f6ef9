"""Test what asks language models, without one: a model on this machine that answers as it is told.

The names here are the public ones. To import them loads the standard library alone.
"""

from __future__ import annotations

from assay.testing.asked import Asked, Fence
from assay.testing.fake_model import Answer, FakeJudge, FakeModel, Move, calls, says
from assay.testing.faults import Fault
from assay.testing.heuristic import heuristic_verdict
from assay.testing.solver import solver, through_recording, through_shell

__all__ = [
    "Answer",
    "Asked",
    "FakeJudge",
    "FakeModel",
    "Fault",
    "Fence",
    "Move",
    "calls",
    "heuristic_verdict",
    "says",
    "solver",
    "through_recording",
    "through_shell",
]
