"""Differential privacy: the events of a fit, what they cost, and the noise that pays for them.

This room decides what a mechanism may release about private units and what that costs. It knows
codes and counts, and no generator.

- `_validate`: what events share: noise that is not decided, and checks that name the event and
  the field
- `accounting`: what a list of events costs, as one (epsilon, delta)
- `answers/`: answers to declared questions: sums of whole numbers over rows, choices among
  candidates, and votes of teachers
- `counting/`: rows that histograms are counted of: in memory, or where they lie
- `discovery/`: which codes occur: partition selection with noise and a threshold
- `dpsgd_event`: subsampled Gaussian steps
- `entropy`: the one source of randomness for noise, sampling of units, and shuffles
- `events`: the mechanisms of a fit that read private rows, as facts that an accountant interprets
- `filter`: what a sequence of fits may spend when budgets are chosen as results come in
- `gaussian`: delta at an epsilon, and back, in closed form
- `group_privacy`: what a guarantee for one unit is worth to somebody who has several of them
- `losses/`: privacy losses: the pair of laws by which an event is accounted, and its distribution
- `mechanisms`: noisy histograms of a cohort, with exact discrete noise
- `noise_source`: which library drew the noise of a fit, and in which version: public, for whoever
  asks later
- `noisy_queries`: questions about real rows whose answers may be published: whole numbers with
  discrete noise
- `pair_statistics/`: numbers about all pairs of columns at once: products of contrasts,
  and departures from a guess
- `payments`: events that are used up as they run: an open plan gives each of them its noise once
- `plan`: all events of a fit, with their noise, before the data is opened
- `plan_variants`: on which terms a generator reads rows: under a plan, watched or not, or without
  privacy
- `quality_budget`: the event that pays for public quality figures: reserved in the plan, spent
  once after the fit
- `renyi`: renyi divergences of events at one integer order, rounded up, and what they mean as an
  epsilon
- `unit`: whose presence its epsilon is about, and whom a ledger counts
- `unit_terms`: the one place that says "patient", "row" or "value of a column"
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
