"""Generators: what learns from coded rows under a privacy plan, and emits codes.

This room decides how the budget of a fit is used. It never sees a cell, a file or an attack.

- `assumed_shares`: how often each value of a column is assumed to occur, where only public facts
  are known
- `auditing/`: what audits need of generators: leaky ones, likelihoods, and the transcript of a
  fit
- `base`: what a generator is: it names its events in public, learns from codes once, and emits
  codes
- `checkpoint`: where a fit keeps what its mechanisms have released, so that it can go on after it
  was stopped
- `contrast_settings`: when products of contrasts come before tables of pairs, and what share of
  the budget each gets
- `discovered_codes`: discovered codes in a plan: their event, and the domain that the other events
  are planned with
- `dpsgd/`: DP-SGD with exact clipping by unit: the only way in which private rows change a
  network
- `generators/`: the generators, one in each file beside its networks
- `grain_settings`: which columns a fit measures grains of, and what share of its budget that gets
- `histories/`: histories of patients: several linked tables, learned and drawn patient by patient
- `marginals/`: noisy counts, and the distributions that are fitted to them
- `outside/`: generators of other packages: they ask for noisy results, and get no row
- `presets`: settings of the generators: a public function of (population, columns, codes,
  epsilon)
- `registry`: the generators by name, a line for each. Looking one up imports its libraries, and
  only its own
- `run_size`: how many bytes the run of a fit may take: a public bound, to make sure of the room
  beforehand
- `spending`: how a generator of another package divides its budget among the mechanisms of dpsynth
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
