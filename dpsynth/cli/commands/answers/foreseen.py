"""What `--what-if` says of labels and of linkage: what to expect at each of several budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar


class Foreseen(Protocol):
    """What to expect at a budget."""

    def lines(self) -> Sequence[str]:
        """Say it in lines."""


Found = TypeVar("Found", bound=Foreseen)


def by_budget(
    tried: Mapping[float, Found], values: Callable[[Found], dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Say what to expect at each budget, as values and as lines."""
    lines = []
    for epsilon, found in tried.items():
        lines += [f"epsilon {epsilon:g}", *[f"  {line}" for line in found.lines()]]
    return {"epsilons": {f"{one:g}": values(tried[one]) for one in tried}}, lines
