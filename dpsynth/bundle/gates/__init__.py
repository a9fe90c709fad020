"""Public gates: what a synthetic table must pass before its release, judged without private rows.

- `decision`: public gates stop it or not, a policy may ask for more, a person less
- `event_curves`: the share of synthetic patients without an event over time
- `histogram_bins`: at most 30, equally wide, with ends that people would choose
- `histories`: what synthetic patients of linked tables look like in time, for the page
- `patient_days`: origins and ends of follow-up of synthetic patients, and how rows are read
- `profile`: what each column holds, in exact figures
- `public_gates`: what must hold of a release, judged from artifact and synthetic table alone
- `row_counts`: how many rows synthetic patients have, and how many days lie between them
- `temporal_rules`: how many synthetic patients of a bundle break a temporal rule
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
