"""Public gates: what a synthetic table must pass before its release, judged without private rows.

- `histories`: what synthetic patients of linked tables look like in time, for the page
- `profile`: what each column holds, in exact figures
- `public_gates`: what must hold of a release, judged from artifact and synthetic table alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
