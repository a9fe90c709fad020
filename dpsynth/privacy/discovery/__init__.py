"""Which codes occur: partition selection with noise, and a threshold that follows from delta.

A list of the codes that patients have would name the code that one patient alone has. So a code is
published only if the noisy number of patients with it reaches a threshold.

- `event`: the mechanism as a fact of a plan, its threshold, and the proof of what it costs
- `key_counts`: counts of keys that nobody declared, on the rows of units
- `key_event`: the event of such counts, their threshold, and what they cost
- `outlook`: how many patients a code needs, and how many codes will be missed, from public facts
- `selection`: the mechanism itself, on the codes that units have
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
