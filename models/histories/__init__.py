"""Histories of patients: several linked tables, learned and drawn patient by patient.

- `chain`: histories drawn step by step, from each patient's first row on
- `conditional`: draws of some columns of a mixture, given others
- `distilled`: a step table's mixture taught to a network
- `domain`: public facts of linked tables, as a generator of histories sees them
- `generator`: `cohort`, histories of patients from noisy counts
- `grids`: public grids for numbers of rows, days, gaps and paces
- `linked_domain`: the public facts of linked tables, from the codec of their schema
- `lines`: where a measurement is expected, given a patient's level
- `networks/`: networks of linked tables, trained by DP-SGD with the patient as the unit
- `person_table`: the table of patients with hidden columns that describe their histories
- `settings`: events of a fit of histories, and how the budget is split among them
- `stack`: steps of all series of a table, counted together
- `step_events`: the events that read a table's steps, by name, and their public settings
- `step_fit`: what is learned of the steps of a table
- `step_model`: what a fit keeps of the steps of one series
- `step_pairs`: which pairs of a step table's columns are measured, and how finely
- `step_table`: the steps of histories, one row for each pair of consecutive rows
- `table_rows`: the rows of one table of repeated rows, and its steps
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
