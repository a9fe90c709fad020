"""Differential privacy: the events of a fit, what they cost, and the noise that pays for them.

This room decides what a mechanism may release about private units and what that costs. It knows
codes and counts, and no generator.

- `accounting`: accounting: what a list of events costs, as one (epsilon, delta)
- `answer_events`: the events of statistics, linkage and labels, and what each costs
- `answers`: noisy answers: what rows add is checked against the event, and only then noise is drawn
- `attack_rates`: what a plan lets the best membership attack reach, from all of its events
- `discovery`: discovery: which codes and keys are published, and what to expect beforehand
- `discovery_events`: the events of discovery: codes and keys that nobody declared, above a
  threshold
- `entropy`: the one source of randomness for noise, sampling of units, and shuffles
- `events`: the mechanisms of a fit that read private rows, as facts that an accountant interprets
- `filter`: what a sequence of fits may spend when budgets are chosen as results come in
- `mechanisms`: noisy histograms of a cohort, with exact discrete noise
- `noisy_event`: what events share: their noise, the pair of laws that dominates each, and
  checks of their fields
- `pair_statistics`: statistics of all pairs of columns: products of contrasts, and departures
- `payments`: events that are used up as they run: an open plan gives each of them its noise once
- `plan`: all events of a fit, with their noise, before the data is opened
- `public_quality`: public quality figures: the event that pays for them, and questions with
  noisy answers
- `stay_filters`: the filter of time series: what a stay adds to each period, and how far it moves
  all of them
- `unit`: whose presence its epsilon is about, and whom a ledger counts
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
