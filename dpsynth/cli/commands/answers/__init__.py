"""Commands that answer from private rows directly, without a generator.

- `labels`: labels of public rows, by teachers on disjoint patients
"""
