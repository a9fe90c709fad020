"""The libraries of a full installation, which a light one does without.

``pip install dpsynth`` is light: it reads schemas, plans, verifies and signs bundles, and keeps the
ledger. ``pip install 'dpsynth[full]'`` adds what fits, samples, evaluations and audits need; most
of it is torch.
"""

from __future__ import annotations

from importlib.util import find_spec

from dpsynth.errors import InputError
from dpsynth.noise_source import LEAST, installed, too_old

FULL = {
    "lifelines": "lifelines",
    "opendp": "opendp",
    "plotly": "plotly",
    "safetensors": "safetensors",
    "sdmetrics": "sdmetrics",
    "sklearn": "scikit-learn",
    "torch": "torch",
}
"""What is imported, and what it is called where it is installed from."""

_FITTING = ("torch", "opendp", "safetensors")  # to learn, to add exact noise, to save a run


def remedy(module: str | None) -> str | None:
    """Say what to do about a module that could not be imported; None if a light dpsynth has it."""
    library = FULL.get((module or "").partition(".")[0])
    if library is None:
        return None
    return f"{library} is not installed, and this needs it: pip install 'dpsynth[full]'"


def require_fitting() -> None:
    """Refuse to begin what could not be ended: a fit that fails half-way is charged all the same.

    Raises:
        InputError: it names the first library that is missing, or whose noise is known to be wrong.
    """
    for module in _FITTING:
        if find_spec(module) is None:
            raise InputError(f"{remedy(module)}; nothing was charged")
        if too_old(module, found := installed(module)):
            least = ".".join(map(str, LEAST[module]))
            raise InputError(
                f"{module} {found} draws noise that is biased; nothing was charged. Install "
                f"{least} or later: pip install '{module}>={least}'"
            )
