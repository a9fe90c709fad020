"""What decile bins of single modelled columns cannot show: means, tails, derived columns, rules.

- `followed`: derived columns, dates of intervals, and the calendar, of the published table
- `location`: mean and reach of each column of numbers: what bins of equal mass cannot show
- `numeric_values`: the numbers that are compared one column at a time: of each table
- `unseen`: combinations of two columns that no real row has: candidates for rules
"""
