"""The commands of `dpsynth`: each reads its options, calls a room below, and shows what it returns.

- `answers`: ``dpsynth stats``, ``labels``, ``linkage`` and ``local``: answers without a generator
- `audit`: attack a synthetic table, and the training it came from
- `demo`: the whole way on a simulated cohort, from patients to a checked bundle
- `evaluate`: synthetic tables against real ones
- `fit`: learn a generator from private rows, and charge the ledger for it
- `ledger`: what each dataset has spent, and what the policy leaves it
- `office`: forms in a browser on this machine, to prepare a release and to run it
- `plan`: every mechanism of a fit and its noise, before any data is opened
- `release`: a bundle of a run; its events, and a draft for an impact assessment
- `rules`: rules that are offered after a fit, for a person to confirm
- `run`: from a private table to a bundle, in one go that can be resumed
- `sample`: synthetic rows from a run
- `schema`: list, show, draft and check schemas
- `signing`: ``dpsynth keygen`` and ``dpsynth sign``: the office's key, and its signature of a
  bundle
- `split`: a private table into train and holdout, by unit
- `verify`: the check of a bundle, with nothing but the bundle unless more is named
"""
