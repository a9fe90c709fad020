"""What audits need of generators: leaky ones, likelihoods, and the transcript of a fit.

- `leaky`: generators that leak on purpose: the controls that an audit must catch
- `likelihood`: how likely a fitted generator makes a row: what released weights say about a
  person
- `transcript`: an observer of a fit: all that the plan releases, compared with canaries, for audits
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
