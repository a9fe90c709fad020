"""`dpsynth office`: forms in a browser for the person who prepares a release, and for who runs it.

This room shows and takes forms. What a form does is done by the rooms below or by a command, and is
a file afterwards, so an office that is ended loses nothing. Two roles: who prepares never opens a
row of a table; who runs may see rows.

- `columns`: the columns of a schema as one table: what each is, where that comes from, what is open
- `inputs`: parts of a document as fields of a form, and back
- `job`: one command at work beside the server: it outlives the server
- `office_folder`: what both roles share: the folder, how a page is shown, how a stale form is met
- `prepare`: the role that may not see rows: a schema and settings
- `rendering`: how pages are rendered: escaped, with one style sheet
- `run`: the role that may see rows: check, run, review, release, sign off, download
- `server`: who may ask it, and what each answer allows a browser
- `written_yaml`: a YAML file that people and this office write by turns: changed in place
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
