"""How the cells of a column are written, beyond its type: what a schema declares, read and written.

- `date_formats`: several date formats, and the pairs of them that read one text as two dates
- `detection_limits`: the limits of detection of a column: what ``<5`` and ``>2000`` may mean
- `form_reader`: value maps, letter case, limits of detection, reasons of missing cells, units and
  date formats in a schema document, with every mistake noted
- `form_writer`: the same declarations, back in a document
- `status`: the column beside a column that says whether a cell is censored, or why it is missing
- `value_maps`: the value map of a column, and the texts of a column that would have two meanings
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
