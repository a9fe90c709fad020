"""The files of a bundle and their documents: names, manifest, figures, audits, signature.

- `about`: what an office says in public about a release: who publishes it, for what, under which
  licence
- `audits`: audits of a run that may be published: they attack the training on rows that are
  nobody's
- `layout`: what a file of a bundle is, and how the manifest describes and lists it
- `manifest`: a Data Package v2 document, with dpsynth's own part read strictly, and with it all
  other documents: what derived files are made from
- `precision`: how precisely columns, groups and pairs of columns were measured
- `provenance`: how the tables of a bundle were drawn: with the run, enough to draw them again
- `quality`: the quality figures of a table that may be published, because the plan of its fit
  paid for them
- `signature`: ed25519 (RFC 8032) over the bytes of its manifest
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
