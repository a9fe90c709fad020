"""Work that an engine failed at, done again by this process, so that what was charged is not lost.

Answers of the engine are thrown away before: no piece is taken from both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from dpsynth._util.engines.engine import Engine, InProcess, Take, each_once
from dpsynth._util.workers import Work
from dpsynth.errors import DpsynthError, DpsynthWarning, InputError

Answer = TypeVar("Answer")


def read_at_once(read: Callable[[], Answer]) -> Answer | None:
    """Let an engine read a table; None if it failed, and this process has to read it again.

    Warns:
        DpsynthWarning: the engine failed, and not for what is in the table: an error of that kind
            is raised again, and names its line, when this process reads.
    """
    try:
        return read()
    except InputError:
        return None
    except DpsynthError as error:
        again = f"{error}. This process reads the table again, alone"
        warnings.warn(again, DpsynthWarning, stacklevel=4)
        return None


def each_once_or_here(
    engine: Engine, work: Work[Answer], count: int, begin: Callable[[], Take[Answer]]
) -> None:
    """Do all pieces as `each_once`; if the engine fails, do all of them in this process.

    Args:
        engine: who does the work first.
        work: what is done.
        count: of pieces.
        begin: forgets all answers, and returns what takes those that come.

    Raises:
        DpsynthError: a piece failed in this process as well.

    Warns:
        DpsynthWarning: this process did the work.
    """
    refused: InputError | None = None
    if not isinstance(engine, InProcess):
        try:
            return each_once(engine, work, count, begin())
        except InputError as error:
            refused = error  # of the work, which raises it again, or of a worker
        except DpsynthError as error:
            again = f"{error}. This process does the work again, alone"
            warnings.warn(again, DpsynthWarning, stacklevel=3)
    each_once(InProcess(), work, count, begin())
    if refused is not None:
        done = f"{refused}. This process did the work again, alone"
        warnings.warn(done, DpsynthWarning, stacklevel=3)
    return None
