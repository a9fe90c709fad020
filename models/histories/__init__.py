"""Histories of patients: several linked tables, learned and drawn patient by patient.

- `beginnings`: how drawn histories begin: each patient's first row in one series
- `chain`: histories drawn step by step, from each patient's first row on
- `conditional`: draws of some columns of a mixture, given others
- `distilled`: `cohort`, whose table of patients is drawn by a network that learns from its mixture
- `domain`: public facts of linked tables, as a generator of histories sees them
- `drawn_steps`: steps of patients that a generator draws itself, on which its networks learn
- `gap_calibration`: factors of the gaps of a series, with which drawn gaps are those released
- `generator`: `cohort`, histories of patients from noisy counts
- `grids`: public grids for numbers of rows, days, gaps and paces
- `kept_counts`: what was counted and is used up within a fit, kept for one that goes on
- `latent/`: histories from facts that sum patients up, and from how their rows follow
- `linked_domain`: the public facts of linked tables, from the codec of their schema
- `networks/`: networks of linked tables, trained by DP-SGD with the patient as the unit
- `persons/`: the table of patients: one row each, with hidden columns that describe her histories
- `roundings`: how often drawn numbers are rounded, so that they are written as was counted
- `row_grains`: the events of the grains: how the numbers of all of a patient's rows are written
- `row_weights`: how columns of one row go together: what steps take over of first rows
- `settings`: events of a fit of histories, and how the budget is split among them
- `steps/`: the steps of histories, from each row of a patient to her next
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
