"""Answers to declared questions: sums over rows, choices, votes of teachers, linked pairs.

- `choice`: the best of several candidates by their scores
- `choice_event`: the event of such a choice, and what it costs
- `event`: the event of sums over rows, and how far a unit moves them
- `filters`: weights by which a time series is filtered, and how far a stay moves it then
- `laplace_event`: the event of counts with discrete Laplace noise, and what they cost
- `links`: linked pairs of two registers counted by largest b-matchings, with noise
- `links_event`: the event of such counts, and how far a record of either register moves them
- `stay_event`: the event of stays over a window of periods
- `stays`: units present in each period, filtered, with noise
- `sums`: sums over rows with noise, checked before any noise is drawn
- `votes`: units dealt to teachers, and their votes counted with noise
- `votes_event`: the event of such votes (PATE), and what it costs
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
