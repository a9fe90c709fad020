"""Verbs that need both generators and attacks: evaluation, audit, published quality, shadow models.

This room decides which private rows an assessment reads, and keeps its results internal.

- `attack_audit`: attack a synthetic table, and the training it came from, before others do
- `attack_plugins`: attacks of other packages: entry points of the group ``dpsynth.attacks``,
  loaded and checked
- `charged_audit`: an audit of the training among real rows: a fit of its own, planned, reserved,
  charged
- `evaluation`: the verbs that hold synthetic tables against real ones: evaluate and compare
- `fitted_controls`: generators that leak, and one that does not, on simulated patients
- `open_points`: what is open before a bundle is signed: in the bundle itself, and in the internal
  results
- `published_quality`: the one way from real rows to public figures, and the plan has paid for it
- `repeated_audits`: an audit of the training that could see no leak is made again, with more
  canaries
- `results_folder`: an evaluation, an audit, or both, and one page for them
- `shadow_models`: the generator is fitted many times, with and without a few exposed people
- `training_audit`: an audit of the training in one run: canaries among synthetic rows
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
