"""Public gates: what a synthetic table must pass before its release, judged without private rows.

- `decision`: public gates stop it or not, a policy may ask for more, a person less
- `histogram_bins`: at most 30, equally wide, with ends that people would choose
- `profile`: what each column holds, in exact figures
- `public_gates`: what must hold of a release, judged from artifact and synthetic table alone
- `temporal_rules`: how many synthetic patients of a bundle break a temporal rule
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
