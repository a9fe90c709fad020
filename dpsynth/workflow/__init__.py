"""`dpsynth run`: a whole release from settings, stage by stage; each stage can be resumed.

This room decides the order of the stages and what one leaves for the next.

- `resolved_settings`: an order: the settings of a run with everything that follows from them and
  from public facts
- `runner`: a whole run, from a private table to a bundle: stages in order, each of which can be
  resumed
- `settings`: the settings of a whole run, from a private table to a bundle: what ``dpsynth run``
  takes
- `stage`: what it takes, how it is recognised as done, and how it is carried out
- `stages`: the stages of a run: check, split, fit, draw, evaluate, audit, release
- `subjects`: what a run is about: one table or linked ones, and what a stage asks of it
- `work_folder`: what its stages leave for one another, and which settings they took
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
