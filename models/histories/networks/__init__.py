"""Networks of linked tables, which learn by noisy gradients with the patient as the unit.

- `autoregressive`: networks of `cohort`'s tables, which learn from whole histories
- `choice`: which generator of linked tables `auto` takes, and what it runs
- `crossing`: weights of products of two columns, after a noisy score
- `kept_steps`: the private steps, all of the plan, kept from time to time
- `patient_units`: whole histories as units of DP-SGD: a patient's steps of all tables
- `score`: what rows say of a network's weights, in coordinates of their prior
- `scored_steps`: steps that drawn patients take, by what steps of patients weigh in a score
- `scoring`: a network's weights after a noisy score
- `step_networks`: the networks of several step tables as one, trained together
- `training`: settings of the training; public facts alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
