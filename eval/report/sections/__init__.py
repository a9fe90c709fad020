"""The sections of the internal report, one in each file.

- `audit`: its verdict first, then each attack, the controls, settings
- `audit_settings`: all its measures, its settings and run times, and what it left out
- `column_pictures`: one distribution in every table
- `epsilon`: as claimed, as attacks prove it, and as they would have seen it
- `fidelity`: sections of the internal report on fidelity: columns, pairs, what is missing, ends
- `followed`: derived columns, dates of intervals and the calendar in the internal report
- `inference`: guesses about people in the internal report: attributes, links, and singling out
- `means`: mean and outer percentiles of each numeric column in the internal report
- `membership`: attacks on a synthetic table in the internal report: copies, and who was in the
  data
- `outside`: which columns have values beyond the source's range, and what it means
- `queries`: the section of the internal report on counting queries
- `relations`: the strongest relations by name, and pairs of values that no real row has
- `rows`: sections of the internal report that judge rows as a whole: told apart, scored, mapped,
  ruled
- `subgroups`: the section of the internal report on subgroups: who is served worst
- `table_attacks`: a section for each attack on a table, and the form of those that have none of
  their own
- `training`: attacks on the training in the internal report: canaries in one run, and shadow
  models
- `utility`: sections of the internal report on usefulness: models, odds, means, survival,
  subgroups
"""
