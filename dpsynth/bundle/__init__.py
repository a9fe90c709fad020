"""The release bundle: data, dictionary, certificate and evidence that leave the office together.

This room decides what is released and how a recipient verifies it. Everything in a bundle follows
from the run and from public facts.

- `checks/`: the parts of a verification: files and signature, certificate, tables
- `dpia`: the text for a data protection impact assessment (DPIA), of a run or a bundle in a
  folder
- `evidence`: a run or a bundle and the ledger that charged it: evidence, and permission to release
- `files`: the public files of a bundle, each in one entry: release, verify and the manifest loop
  over them
- `format/`: the files of a bundle and their documents: names, manifest, figures, audits,
  signature
- `gates/`: public gates: what a synthetic table must pass before its release, judged without
  private rows
- `meds`: the tables of a bundle as events: the Medical Event Data Standard (MEDS 0.4) of sequence
  models
- `pages/`: what people read in a bundle: the report, the card, the Croissant document, the
  assessment
- `run_precision`: what a run says of its own precision: released counts, and their noise
- `signing`: the verb `sign`: the office vouches for a bundle, after the bundle was verified
- `verifier`: by anyone, with nothing but the bundle, without torch or a database
- `writer`: release: from a run to a bundle that may leave the office
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
