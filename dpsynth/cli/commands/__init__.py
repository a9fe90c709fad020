"""The commands of `dpsynth`: each reads its options, calls a room below, and shows what it returns.

- `audit`: attack a synthetic table, and the training it came from
- `demo`: the whole way on a simulated cohort, from patients to a checked bundle
- `evaluate`: synthetic tables against real ones
- `fit`: learn a generator from private rows, and charge the ledger for it
- `labels`: ``dpsynth labels``: label public rows from the noisy votes of teachers
- `ledger`: what each dataset has spent, and what the policy leaves it
- `linkage`: ``dpsynth linkage``: how many candidate pairs of two registers match, by threshold
- `local`: ``dpsynth local``: answers that are randomised at their source, without a trusted curator
- `plan`: every mechanism of a fit and its noise, before any data is opened
- `release`: a bundle of a run; its events, and a draft for an impact assessment
- `run`: from a private table to a bundle, in one go that can be resumed
- `sample`: synthetic rows from a run
- `schema`: list, show, draft and check schemas
- `signing`: ``dpsynth keygen`` and ``dpsynth sign``: the office's key, and its signature of a
  bundle
- `split`: a private table into train and holdout, by unit
- `stats`: ``dpsynth stats``: statistics of a private table, with noise and intervals
- `verify`: the check of a bundle, with nothing but the bundle unless more is named
"""
