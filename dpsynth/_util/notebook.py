"""Progress of long verbs in a notebook: a bar of tqdm for each stage, without being asked.

A verb is decorated with `shown_in_notebooks`. Outside a notebook, or where its caller gives
``progress``, nothing changes. Source: https://tqdm.github.io/docs/tqdm/ (``tqdm.auto``).
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

from dpsynth._util.output import write_line
from dpsynth.errors import printable

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook (Jupyter, Colab, VS Code).

    A terminal, a script and an IPython shell are none.
    """
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


class NotebookProgress:
    """A progress callback that shows a bar in per cent for each stage, or else one line each.

    >>> with NotebookProgress() as progress:  # doctest: +SKIP
    ...     dpsynth.fit(table, schema, progress=progress, **budget)
    """

    def __init__(self) -> None:
        """Find tqdm; without it each stage gets a line on standard error."""
        self._stage = ""
        self._bar: Any = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns where ipywidgets are missing
                from tqdm.auto import tqdm
        except ImportError:
            self._kind: Any = None
        else:
            self._kind = tqdm

    def __enter__(self) -> Self:
        """Return the callback."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no bar that still seems to move."""
        self._close()

    def __call__(self, stage: str, fraction: float) -> None:
        """Show how far a stage is, 0 to 1."""
        if stage != self._stage:
            self._close()
            self._stage = stage
            if self._kind is None:
                write_line(f"{stage} ...", err=True)
            else:
                self._bar = self._kind(
                    total=100,
                    desc=printable(stage),
                    bar_format="{l_bar}{bar}| {elapsed}<{remaining}",
                )
        percent = int(100 * min(1.0, fraction))
        if self._bar is not None and percent > self._bar.n:
            self._bar.update(percent - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar, self._stage = None, ""


def shown_in_notebooks(verb: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Let a verb with a ``progress(stage, fraction)`` keyword show a bar in a notebook."""

    @functools.wraps(verb)
    def shown(*args: Given.args, **options: Given.kwargs) -> Answer:
        if options.get("progress") is not None or not in_notebook():
            return verb(*args, **options)
        with NotebookProgress() as progress:
            options["progress"] = progress
            return verb(*args, **options)

    return shown
