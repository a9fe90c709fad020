"""Files that are written whole or not at all, private or apart from what others are given.

This room decides what becomes of an output when a process is killed, a disk is full, or two
processes want the same name.

- `apart`: private files stay apart from what is given away: they never lie in a run or a bundle;
  large ones lie in a private folder for a while
- `atomic`: files and folders that appear complete or not at all
- `os_errors`: what is wrong, and what to do
- `output_claim`: claimed before it begins, and saved elsewhere if all else fails
- `updates`: lists beside a run that several commands add to: one at a time, so that no entry is
  lost
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
