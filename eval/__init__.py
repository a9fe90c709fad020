"""Figures and attacks on tables: is a synthetic table like its source, useful, and safe.

This room reads real rows and knows no generator. All that it finds is internal, but for published
quality figures, whose answers are paid for.

- `attack_stats/`: the statistics of attacks: who plays, what was found, and what that refutes
- `attacks/`: attacks on synthetic tables and on trainings, with their controls
- `combine`: one estimate from several synthetic tables, with a standard error that holds
- `core/`: what all parts of an evaluation share: tables, bins, estimates with intervals
- `distances`: how far rows lie apart, which are nearest, and how dense a table is around a
  record
- `evaluation`: all parts on one set of tables, as one document. Internal from end to end
- `fidelity/`: is the synthetic table like the source: columns, pairs, queries, classifiers
- `gates`: thresholds with reasons, on figures that were computed from real rows
- `longitudinal/`: are synthetic histories of patients like real ones
- `overview`: a first look at a synthetic table beside its source: internal, never released
- `quality_queries`: what to ask of the real rows, so that the quality of a synthetic table can
  be published
- `report/`: the internal report: key figures, charts and sections, as one page
- `utility/`: does the synthetic table serve: models, regressions, survival, subgroups
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
