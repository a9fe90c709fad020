"""Commands that answer from private rows directly, without a generator.

- `foreseen`: what to expect at each of several budgets, as values and as lines
- `labels`: labels of public rows, by teachers on disjoint patients
- `linkage`: how many candidate pairs of two registers match, by threshold
- `local`: answers that are randomised at their source
- `stats`: statistics of a private table
"""
