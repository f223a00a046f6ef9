"""Judges: graders that ask a language model, and believe no word of what it is shown.

`prompt` and `fence` write questions in which trusted words and material never mix; `gate` decides
what needs no question; `panel` asks, `votes` decides; `evidence` looks quotes up, and `canary`
finds out a judge that was talked round. On these stand `rubric` and `claims`, and the kinds in
`assay.graders`.
"""
