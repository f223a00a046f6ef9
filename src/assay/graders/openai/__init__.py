"""OpenAI's graders: their templates, checks, similarity, Python, formulas, and what judges need.

A definition is read from the JSON of the API or from YAML; it turns an *item* (the row) and a
*sample* (what the model said) into a reward.
"""
