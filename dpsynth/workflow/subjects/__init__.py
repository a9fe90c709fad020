"""What a run is about: one table, or linked tables of patients.

A run has the same stages for both; where they do different things, a stage asks the subject.

- `choice`: which subject a run has: its schema says
- `linked_tables`: a run of linked tables: folders of files, cohorts, histories
- `one_table`: a run of a single table
- `subject`: what a stage asks
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
