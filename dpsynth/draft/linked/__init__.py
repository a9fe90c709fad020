"""Drafts of packages: linked tables, proposed from the headers of their files.

- `columns`: which column of each table is its key, its day, its test: by name alone
- `folder`: the tables of a folder, from the first lines of its text files
- `package`: a draft of a package, from a folder of files or a dictionary of several tables
- `text`: a package as YAML with comments
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
