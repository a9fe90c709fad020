"""P10: a bundle states the epsilon that its events compose to, and nobody can state another one."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.99, 1.01])
def test_another_epsilon_than_that_of_the_events_is_found(factor: float, forger: Any) -> None:
    def change(document: dict[str, Any]) -> None:
        document["composed_epsilon"] *= factor

    forger.recertify(change)
    assert "not to the stated" in forger.findings()


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_a_claim_below_its_events_is_found(factor: float, forger: Any) -> None:
    """Whoever lowers the claim lowers what is stated with it."""

    def change(document: dict[str, Any]) -> None:
        for name in ("epsilon", "composed_epsilon"):
            document[name] *= factor

    forger.recertify(change)
    assert "above the claim" in forger.findings()
