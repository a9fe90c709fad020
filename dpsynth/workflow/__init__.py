"""`dpsynth run`: a whole release from settings, stage by stage; each stage can be resumed.

This room decides the order of the stages and what one leaves for the next.

- `assessment_stages`: the stages that stay in the office: evaluation and audit of the table that
  will be released
- `check_stage`: the stage that looks at the private table before anything is charged: does it fit
  its schema
- `fit_stage`: one fit, charged once, and never again without being told
- `public_figures`: the share of the budget for public quality figures, spent once
- `release_stage`: the stage that makes the bundle; it is signed by hand, once what is internal
  was read
- `resolved_settings`: an order: the settings of a run with everything that follows from them and
  from public facts
- `runner`: a whole run, from a private table to a bundle: stages in order, each of which can be
  resumed
- `setting_paths`: which settings are paths, and what each is relative to
- `settings`: the settings of a whole run, from a private table to a bundle: what ``dpsynth run``
  takes
- `settings_reader`: from a document to the values of `Settings`: every mistake is noted before
  any is reported
- `stage`: what it takes, how it is recognised as done, and how it is carried out
- `subjects/`: what a run is about: one table, or linked tables of patients
- `table_stages`: the split of the private one, and the draw of the synthetic one
- `work_folder`: what its stages leave for one another, and which settings they took
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
