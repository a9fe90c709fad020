"""Are synthetic histories like real ones: how often, when, what follows what, and what it predicts.

Cohorts are coded histories. Patients are the unit throughout: each weighs one, and intervals are
over patients.

- `cohort`: the cohorts of a comparison: their public facts, their groups of patients, and their
  sums
- `evaluation`: all parts on one set of cohorts, as one document
- `facts_of_patients`: facts of patients: who has which code, what codes and values have to do,
  survival, regressions
- `facts_of_rows`: facts of patients' rows: values by place, tests taken together, days, and what
  rows lie within
- `named_facts`: facts of histories with names: one figure of all of them, and where they differ
  most
- `persons`: the baseline, alone and in pairs, and how it belongs to the rows
- `pictures`: what pages show of synthetic histories alone
- `prediction`: models of histories: train on synthetic ones and test on real ones, and tell
  both apart
- `rows`: the values of rows: each column alone, and pairs of columns within a row, each patient
  once
- `survival`: events in time: rates, and Kaplan-Meier curves by group
- `timing`: how often patients are seen: rows per patient, and gaps between rows
- `uses`: what a patient's history keeps and what it loses, judged by figures beside references
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
