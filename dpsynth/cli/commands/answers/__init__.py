"""Commands that answer from private rows directly, without a generator.

- `labels`: labels of public rows, by teachers on disjoint patients
- `linkage`: how many candidate pairs of two registers match, by threshold
- `local`: answers that are randomised at their source
- `stats`: statistics of a private table
"""
