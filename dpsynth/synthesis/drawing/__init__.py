"""Synthetic rows of one table, from what a fit learned and nothing else.

This room decides which rows are drawn: by the schema's rules, under a condition, in equal numbers
of the categories of a column, or as completions of rows that a user begins.

- `acceptance`: how many drawn rows met the rules; the others were drawn again
- `balanced`: rows with the categories of a column in equal numbers
- `boxes`: a condition on rows as boxes of codes
- `completion`: rows that the user begins, and the model completes; no release takes them
- `conditioned`: a generator that is kept to the boxes of a condition
- `fitted`: what a sampler needs of a run, whatever made it
- `sampler`: synthetic rows from a run: streamed, repeatable by seed, kept to the schema's rules
- `support`: how many real patients are behind a condition, by the model
- `workers`: tables that several processes draw at once; they are what one process draws
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
