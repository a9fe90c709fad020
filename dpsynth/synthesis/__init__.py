"""From a private table to a run, and from a run to synthetic rows.

This room decides the order of a fit: plan, charge, read, learn, save. Sampling sees the run alone.

- `any_run`: the run of one table or of linked ones: which of the two, its schema says
- `artifact`: what a fit learned, on disk as JSON and plain arrays: of one table, or of linked ones
- `charged_fit`: the order of a fit, which is the privacy argument: plan, charge, read, learn, save
- `checkpoints`: checkpoints of a fit on disk: a fit that was stopped goes on within its own entry
  of the ledger
- `cohort_fitting`: the verb `fit_cohort`: from linked tables of patients to a run
- `cohort_preparation`: what a fit of linked tables is before it sees any data
- `cohort_replicates`: cohorts whose spread shows how uncertain a fit of histories is
- `cohort_run`: what a fit of linked tables learned; cohorts are drawn from it
- `drawing/`: the room of synthetic rows of one table, from a run
- `fit_cost`: what a fit will take: seconds and memory, from public facts, before its charge
- `fitting`: the verb `fit`: from a private table to a run
- `goodness_of_fit`: the measured cells that a run misses by more than their noise
- `policy_preview`: what a policy would say of a fit: every verdict, the one that binds, and a way
  out
- `preparation`: what a fit is before it sees any data: codec, generator, plan
- `ranks`: a fit by several processes of ``torchrun``: which of them makes it, and which assist
- `replicate_files`: replicates as files, and ``replicates.json``, the record of them beside
  ``run.json``
- `replicates`: tables whose spread shows how uncertain a fit is, made without the source
- `run`: what a fit of one table learned; rows are drawn from it without the source
- `sample_log`: the tables that were drawn from a run: file name, SHA-256, rows, seed, condition,
  plainness
- `shards_folder`: whether the coded rows of a fit are kept on a disk, and where
- `warehouse/`: fits whose rows stay in their warehouse
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
