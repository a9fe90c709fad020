"""`latent`: histories of patients from facts that sum them up, and from how their rows follow.

- `calendar`: days of rows between a patient's first one and her last
- `codes`: codes of rows, of which those that a patient ever has come first
- `correlations`: one correlation matrix from noisy correlations of pairs
- `courses`: numbers of a patient over time: a level, memories, and the distribution of all values
- `generator`: the events of a fit, what it learns from them, and how patients are drawn
- `laws`: distributions of numbers and of times from noisy histograms
- `normal_scores`: normal scores of ordered codes, and the correlation that a mean product says
- `panels`: how deviations of numbers at one time go together
- `patients`: the table of patients: one row each, with facts that sum up her histories
- `placing`: days of rows that follow from declared facts
- `presence`: which tests of a table are taken together, at each occasion
- `variables`: columns of the table of patients as normal variables
- `vector`: the distribution of the table of patients
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
