"""The columns of a row taken together.

- `code_places`: the places of a cell that holds several codes
- `assignments`: whether a row can meet several rules at once: a search over declared values
- `coded`: what is modelled of each row, in place of what is published
- `contradictions`: rules that contradict each other, or the declared bounds
- `declarations`: intervals, derived columns, parts of the calendar: checked against other columns
- `following`: columns that are the group of a code, and columns that are empty in some rows
- `needs`: which columns of a row a column follows from, and the order to compute them in
- `orders`: rules of the form ``a <= b`` that hold by construction, because b is a gap above a
- `requests`: conditions of `sample --where` that no row can meet
- `rule_list`: the list of rules of a table: text, or an order
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
