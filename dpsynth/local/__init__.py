"""The local model: each person's answers are randomised at the source, where no curator is trusted.

This room decides how a person's categories are perturbed before they leave that person, and what
the perturbed answers of many say about all of them. Nobody collects a private row: so there is no
ledger here, and what each person spends is written beside their answers.

- `estimating`: the verb `estimate`: counts and shares without the bias, with their intervals
- `perturbing`: the verb `perturb`: read, randomise, write
- `randomiser`: randomised response and unary encoding: the exact law, the rule that chooses
- `reports`: perturbed answers on disk, with the public settings beside them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
