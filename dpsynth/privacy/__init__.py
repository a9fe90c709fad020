"""Differential privacy: the events of a fit, what they cost, and the noise that pays for them.

This room decides what a mechanism may release about private units and what that costs. It knows
codes and counts, and no generator.

- `_validate`: what events share: noise that is not decided, and checks that name the event and
  the field
- `accounting`: what a list of events costs, as one (epsilon, delta)
- `answer_events`: the events of statistics, linkage and labels, and what each costs
- `answers`: noisy answers: what rows add is checked against the event, and only then noise is drawn
- `discovery`: discovery: which codes and keys are published, and what to expect beforehand
- `discovery_events`: the events of discovery: codes and keys that nobody declared, above a
  threshold
- `entropy`: the one source of randomness for noise, sampling of units, and shuffles
- `events`: the mechanisms of a fit that read private rows, as facts that an accountant interprets
- `filter`: what a sequence of fits may spend when budgets are chosen as results come in
- `gaussian`: delta at an epsilon, and back, in closed form
- `loss`: the pair of laws that dominates an event, for both directions of the adjacency
- `mechanisms`: noisy histograms of a cohort, with exact discrete noise
- `noisy_queries`: questions about real rows whose answers may be published: whole numbers with
  discrete noise
- `pair_statistics`: statistics of all pairs of columns: products of contrasts, and departures
- `payments`: events that are used up as they run: an open plan gives each of them its noise once
- `plan`: all events of a fit, with their noise, before the data is opened
- `quality_budget`: the event that pays for public quality figures: reserved in the plan, spent
  once after the fit
- `stay_filters`: the filter of time series: what a stay adds to each period, and how far it moves
  all of them
- `unit`: whose presence its epsilon is about, and whom a ledger counts
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
