"""Drafts of schemas: proposals from names, dictionaries and a table of clinical ranges.

This room decides what is proposed for a column that a person has yet to describe. It reads headers
and dictionaries, never a row, and no fit accepts what it writes before a person has confirmed it.

- `clinical`: the shipped table of clinical variables: units, plausible ranges, names in nine
  languages
- `clinical_edits`: rules from public lists: codes that hardly ever stand beside a sex or an age
- `dictionary`: data dictionaries: a row for each column, under headings in nine languages
- `drafts`: a draft of a schema, from a header, a dictionary or both
- `entry`: what a document says about one column
- `header`: the names of a table's columns, from the headings of a text file or a sheet
- `history_hints`: what histories could keep by declaration: questions in a draft, by names alone
- `intervals`: columns that belong together: dates, an index and its parts, orders, conditions
- `names`: names of columns in one spelling
- `package`: a draft of a package, from a folder, a workbook, a database or a dictionary of several
  tables, never rows
- `proposal`: the draft of one field, with comments
- `repeating`: REDCap projects with repeating instruments: tables that share one export
- `sheets`: the rows above and with the headings of a workbook's sheet
- `statistics_file`: labels and formats from files of SPSS, SAS and Stata
- `stems`: stems of words in nine languages: what a column's name says by its parts
- `table_header`: the names of a table's columns, from wherever its format keeps them
- `type_words`: words for types, date formats and code systems
- `units`: units of measurement as people write them, matched with UCUM
- `value_lists`: lists of values, ranges and numbers within a cell
- `yaml_text`: a draft as YAML with comments
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
