"""The rows of a table as a whole: rules that they break, duplicates, and how they form units.

- `record_findings`: lines of a text file that are no records of the table
- `row_check`: counts rows, chunk by chunk
- `row_facts`: what was counted, and the findings that follow, whoever counted
- `unlike_rows`: rows that are unlike all others: totals, other footers, second headers
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
