"""Linked tables to coded histories of patients.

This room decides what one patient can contribute with all of her tables: bounded codes and days,
and at most `max_rows` rows of a series.

- `assembly`: the rows of a child table put to their patients: days in the window, in order, capped
- `code_search`: the codes that patients have in all of their tables, up to the private list
- `codec`: what the tables of a schema are coded as; a function of the schema alone
- `decoding`: coded histories back to tables: a frame for each, whose keys agree
- `histories`: coded histories: what a generator learns from, and what it emits
- `patients`: the table of patients, read: who there is, and each one's codes, end and origin
- `reading`: the tables of a schema, read into histories
- `rounding`: drawn numbers, rounded as people round them, by habits that a fit has found
- `rows`: the rows of a child table, coded one by one
- `summaries`: one row that sums up each patient's history, for attacks on tables
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
