"""Where the noise of a step is drawn: in a thread of its own, or at once.

A second thread draws noise while the gradients of a large network are computed. Below `MIN_BESIDE`
values that gains nothing: the draw takes at most 30 microseconds, the change of threads 10 at the
least, and meanwhile both threads wait for the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MIN_BESIDE = 1 << 13  # values a step


class AtOnce(Executor):
    """Does what it is given before it returns, in the thread of the caller.

    >>> AtOnce().submit(sum, [1, 2]).result()
    3
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function; an error reaches the caller here."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def drawing(size: int) -> Executor:
    """Return what draws this many values a step.

    >>> type(drawing(100)).__name__, type(drawing(1_000_000)).__name__
    ('AtOnce', 'ThreadPoolExecutor')
    """
    return ThreadPoolExecutor(max_workers=1) if size >= MIN_BESIDE else AtOnce()
