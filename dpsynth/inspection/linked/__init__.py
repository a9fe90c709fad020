"""How the linked tables of a package fit their schema, and each other: exact findings.

- `child_read`: a table of rows, read once: its cells, keys, days, tests and links
- `count_findings`: patients with more rows than count, events that occur again, gaps
- `key_findings`: rows without a patient, patients without rows, keys that occur twice
- `kinds`: the kinds of findings that single tables do not have, with their limits
- `link_findings`: keys from row to row, such as from a laboratory value to a visit
- `linked_check`: the tables of a package compared with its schema, and the findings together
- `patient_read`: the table of patients, read once: its cells, keys, origins and ends
- `remedies`: what to do about a finding, in the places of a package
- `rule_findings`: temporal rules that patients break
- `time_findings`: rows before the window, after the end of follow-up, or without a day
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
