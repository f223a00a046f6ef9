"""Judges: graders that ask a language model, and believe no word of what it is shown.

`prompt` and `fence` write questions in which trusted words and material never mix; `gate` decides
what needs no question; `panel` asks, `votes` decides; `evidence` looks quotes up, and `canary`
finds out a judge that was talked round. On these stand `rubric` and `claims`, and the kinds in
`assay.graders`.
"""

from __future__ import annotations

from assay.conversation.messages import Request
from assay.models.reference import register_model, registered


async def _offline(request: Request) -> str:
    from assay.testing.heuristic import offline_judge

    return offline_judge(request)


if registered("fake") is None:
    register_model("fake", _offline)  # judges need no key to be tried, as agents need none
