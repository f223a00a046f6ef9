"""Judges: graders that ask a language model, and believe no word of what it is shown.

`prompt` and `fence` write questions in which trusted words and material never mix; `gate` decides
what needs no question; `panel` asks and counts votes; `evidence` looks quotes up. On these stand
the kinds: `rubric` (criteria), `binary`, `rag`, `pairwise`, `model_judge`.
"""

from __future__ import annotations
