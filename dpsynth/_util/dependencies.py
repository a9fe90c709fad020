"""The libraries of a full installation, which a light one does without.

``pip install dpsynth`` is light: it reads schemas, plans, verifies and signs bundles, and keeps the
ledger. ``pip install 'dpsynth[full]'`` adds what fits, samples, evaluations and audits need, and
what drafts read from workbooks and statistics programs; most of it is torch.
"""

from __future__ import annotations

import errno
import re
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from dpsynth.errors import InputError

FULL = {
    "lifelines": "lifelines",
    "opacus": "opacus",
    "opendp": "opendp",
    "openpyxl": "openpyxl",
    "plotly": "plotly",
    "pyreadstat": "pyreadstat",
    "safetensors": "safetensors",
    "sdmetrics": "sdmetrics",
    "sklearn": "scikit-learn",
    "torch": "torch",
}
"""What is imported, and what it is called where it is installed from."""

FORMATS = {
    "duckdb": "duckdb",
    "openpyxl": "openpyxl",
    "pyreadstat": "pyreadstat",
}
"""What reads tables of other programs; ``dpsynth[formats]`` installs it."""

WAREHOUSE = {"ibis": "ibis-framework"}
"""What writes SQL for rows that stay in a warehouse; ``dpsynth[warehouse]`` installs it."""

OFFICE = {"starlette": "starlette", "uvicorn": "uvicorn", "python_multipart": "python-multipart"}
"""What serves forms on this machine; ``dpsynth[office]`` installs it."""

# opendp 0.14.0 and 0.14.1 divide rationals wrongly: their noise is biased
MIN_VERSIONS = {"opendp": (0, 14, 2)}

_FITTING = ("torch", "opendp", "safetensors")  # to learn, to add exact noise, to save a run
_USED = ("opendp.measurements", "safetensors.numpy", "pyarrow", "pyarrow.parquet")
_USED_BY_NETWORKS = ("torch", "torch.optim")
_LATER = (
    "opendp._data",
    "pyarrow.pandas_compat",
    "pyarrow.vendored.version",
)
_LATER_BY_NETWORKS = ("torch._dynamo", "torch.profiler._cupti_monitor")
"""What those import when they are first used; the names differ between versions."""


def remedy(module: str | None) -> str | None:
    """Say what to do about a module that could not be imported; None if a light dpsynth has it."""
    name = (module or "").partition(".")[0]
    extras = (("full", FULL), ("formats", FORMATS), ("warehouse", WAREHOUSE), ("office", OFFICE))
    for extra, libraries in extras:
        if name in libraries:
            how = f"pip install 'dpsynth[{extra}]'"
            return f"{libraries[name]} is not installed, and this needs it: {how}"
    return None


def need(module: str) -> None:
    """Make sure that a library is installed, before anything is done with it.

    Raises:
        InputError: it is not; the message says how to install it.
    """
    if find_spec(module) is None:
        raise InputError(str(remedy(module)))


def load_fitting(*, networks: bool) -> None:
    """Import all that a fit, its noise and its saving need, so that nothing is charged in vain.

    A library that is installed and cannot be loaded (a version that does not fit, a shared library
    that is missing) would otherwise stop a fit that is paid for.

    Args:
        networks: whether the generator uses torch beyond tensors: a mixture does, too.

    Raises:
        InputError: it names the first library that is missing, cannot be loaded, or whose noise is
            known to be wrong.
    """
    for module in _FITTING:
        if find_spec(module) is None:
            raise InputError(f"{remedy(module)}; nothing was charged")
        if too_old(module, version := installed(module)):
            minimum = ".".join(map(str, MIN_VERSIONS[module]))
            raise InputError(
                f"{module} {version} draws noise that is biased; nothing was charged. Install "
                f"{minimum} or later: pip install '{module}>={minimum}'"
            )
    later = {*_LATER, *(_LATER_BY_NETWORKS if networks else ())}
    for module in (*_USED, *(_USED_BY_NETWORKS if networks else ()), *sorted(later)):
        try:
            if module not in later or find_spec(module) is not None:
                import_module(module)
        except Exception as error:  # whatever a library does when it is loaded
            library = module.partition(".")[0]
            if short_of_memory(error):
                raise InputError(
                    f"there is too little memory to load {FULL.get(library, library)}; nothing was "
                    "charged. Free some memory, raise the limit (ulimit -v), or use a machine with "
                    "more of it"
                ) from error
            raise InputError(
                f"{FULL.get(library, library)} is installed and cannot be loaded "
                f"({type(error).__name__}); install it again: pip install --force-reinstall "
                f"'dpsynth[full]'; nothing was charged"
            ) from error


def short_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, says that memory ran out.

    The loader of shared libraries says so in words alone, and a library may wrap that.
    """
    while error is not None:
        number = getattr(error, "errno", None)
        words = str(error).lower() if isinstance(error, ImportError | OSError) else ""
        if isinstance(error, MemoryError) or number == errno.ENOMEM:
            return True
        if "cannot allocate memory" in words or "failed to map segment" in words:
            return True
        error = error.__cause__ or error.__context__
    return False


def too_old(library: str, stated: str) -> bool:
    """Whether a version is below the first one that draws correctly."""
    minimum = MIN_VERSIONS.get(library)
    if minimum is None:
        return False
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", stated)
    return match is not None and tuple(int(part or 0) for part in match.groups()) < minimum


@cache
def installed(distribution: str) -> str:
    """Return the version of an installed library, or ``unknown``."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
