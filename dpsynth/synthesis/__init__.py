"""From a private table to a run, and from a run to synthetic rows.

This room decides the order of a fit: plan, charge, read, learn, save. Sampling sees the run alone.

- `capacity`: what a population and a budget can carry: a closed form of public facts
- `charged_fit`: the order of a fit, which is the privacy argument: plan, charge, read, learn, save
- `checkpoints`: checkpoints of a fit on disk: a fit that was stopped goes on within its own entry
  of the ledger
- `completion`: rows that the user begins, and the model completes; and how much a model knows of a
  condition
- `conditions`: rows under a condition: drawn where the condition holds, not thrown away where it
  does not
- `execution`: where and how the work of a fit is done: processes, machines, disks, checkpoints
- `fit_cost`: what a fit will take: seconds and memory, from public facts, before its charge
- `fitting`: the verb `fit`: from private tables to a run
- `goodness_of_fit`: the measured cells that a run misses by more than their noise
- `offered_rules`: rules that are offered after a fit, and the file in which people confirm them
- `policy_preview`: what a policy would say of a fit: every verdict, the one that binds, and a way
  out
- `preparation`: what a fit is before it sees any data: codec, generator, plan
- `readers`: what a fit reads, and where its coded rows lie: private rows that are opened, and not
  yet read
- `replicates`: tables whose spread shows how uncertain a fit is, made without the source
- `run`: what a fit learned, on disk as JSON and plain arrays; tables are drawn from it alone
- `sample_log`: what was drawn from a run: files with their SHA-256, size, seed, condition,
  plainness
- `sampler`: synthetic tables from a run: streamed, repeatable by seed, kept to the schema's rules
- `workers`: tables that are drawn and written: by several processes at once, and those of
  replicates
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
