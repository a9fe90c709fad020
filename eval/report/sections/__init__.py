"""The sections of the internal report, one in each file.

- `attacks`: a section for each attack on a table, and for those on a training: canaries, shadow
  models
- `audit`: its verdict first, then each attack, the controls, settings
- `fidelity`: sections of the internal report on fidelity: columns, pairs, missing values, whole
  rows
- `utility`: sections of the internal report on usefulness: models, odds, means, survival,
  subgroups
"""
