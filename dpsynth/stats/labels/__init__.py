"""Labels by PATE: teachers on disjoint patients vote, and a student learns from noisy votes.

Public or synthetic rows get a label that only private rows tell. Each patient belongs to one
teacher; how many teachers vote for each label of a row is published with noise, and all else
follows from that: the labels by majority, and a student that labels every row.

- `document`: labels on disk: the task, its certificate, noisy votes, and what follows from them
- `labelling`: the verb `labels`: plan, charge, read, vote, write
- `outlook`: what to expect of labels, before anything is spent
- `queries`: the public rows: read, written, and coded like private ones
- `task`: what is to be labelled, by how many teachers, and its event
- `teachers`: each is trained on the rows of her own units, and votes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
