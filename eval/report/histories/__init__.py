"""Pages on histories of patients: an internal one, and one of synthetic histories alone.

- `page`: a page of its own for an evaluation of histories, internal or public
- `sections`: what the internal report says about histories, section by section
- `shown`: what may be shown to anybody: synthetic histories, and no figure of a real row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
