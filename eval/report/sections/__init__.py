"""The sections of the internal report, one in each file.

- `audit`: its verdict first, then each attack, the controls, settings
- `fidelity`: sections of the internal report on fidelity: columns, pairs, what is missing, ends
- `rows`: sections of the internal report that judge rows as a whole: told apart, scored, mapped,
  ruled
- `table_attacks`: a section for each attack on a table, and the form of those that have none of
  their own
- `training`: attacks on the training in the internal report: canaries in one run, and shadow
  models
- `utility`: sections of the internal report on usefulness: models, odds, means, survival,
  subgroups
"""
