"""The answer with which the internal report begins, for people who decide and do not compute.

- `answer`: release, release with a warning, or do not release, and why
- `differences`: the worst columns and relations, in plain words with a small picture
- `figures`: reading an evaluation for a board: its measures, its parts, and its distances in words
- `means`: columns whose mean or outer values are clearly off, in plain words with figures
- `remedies`: what may help, from what was measured and what the run was asked for
- `uses`: what the table is fit for, by thresholds that the guide gives
"""
