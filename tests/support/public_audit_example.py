"""Audits on synthetic rows, made up: what bundles and their pages are tested with.

Scores are drawn, and what is said of them is computed by the classes that audits use, so that
counts, rates, curves and bounds agree with each other.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from dpsynth.bundle.format import ViewResult
from dpsynth.bundle.format.audits import AuditControl, PublicAudit
from dpsynth.eval.attack_stats import Roc, audited

EPSILON, DELTA = 3.0, 1e-6  # of the certificate of tests/conftest.py
TITLES = {
    "black": "Canaries, from what the run keeps (black box)",
    "white": "Canaries, from every noisy release of the fit (white box)",
}
CONTROLS = (
    AuditControl(
        key="no-noise",
        title="A generator without noise, overfitted on purpose",
        kind="positive",
        attack="training:black",
        passed=True,
        sentence="198 of 200 guesses were right, which proves epsilon at least 5.83",
    ),
    AuditControl(
        key="no-clipping",
        title="A fit whose patients are not clipped",
        kind="positive",
        attack="training:white",
        passed=True,
        sentence="all of 1000 guesses were right, which proves epsilon at least 5.31",
    ),
    AuditControl(
        key="blind",
        title="A generator that never saw the planted patients",
        kind="negative",
        attack="training:white",
        passed=True,
        sentence="96 of 200 guesses were right: nothing was found, as it must be",
    ),
)


def public_audit(seed: int = 7, **changed: Any) -> PublicAudit:
    """Return an audit that finds nothing, with some entries replaced."""
    return replace(_audit(seed), **changed)


def seen(audit: PublicAudit, view: int = 0, **changed: Any) -> PublicAudit:
    """Return an audit with some entries of a view replaced."""
    views = list(audit.views)
    views[view] = replace(views[view], **changed)
    return replace(audit, views=tuple(views))


@cache
def _audit(seed: int) -> PublicAudit:
    document = {
        "dpsynth": "0.1.0",
        "model": "independent",
        "background": "run",
        "background_units": 500,
        "seed": seed,
        "claim": {"epsilon": EPSILON, "delta": DELTA},
        "canaries": 1000,
        "included": 489,
        "views": [_view("black", 0.4, seed, None), _view("white", 1.2, seed, 4.61)],
        "controls": [vars(control).copy() for control in CONTROLS],
    }
    return PublicAudit.from_dict(document)


def _view(view: str, apart: float, seed: int, least: float | None) -> dict[str, Any]:
    """Guess who is in, by scores that lie so many deviations apart."""
    included = np.arange(1000) < 489
    scores = np.random.default_rng(seed).standard_normal(1000) + apart * included
    run = audited(scores, included, DELTA)
    proved = max(run.epsilon, run.curve_epsilon)
    power = "not measured: no twin with a known leak was made"
    twin = None
    if least is not None:
        power = (
            f"would have refuted the claim with probability 90% if the fit leaked epsilon {least} "
            "or more; a twin that leaks 12 shows how well the attack sees"
        )
        near = Roc(scores[included] + 3 * apart, scores[~included]).auc.to_dict()
        twin = {"epsilon": 12.0, "auc": near, "proved": 6.1}
    document = {
        "view": view,
        "title": TITLES[view],
        **Roc(scores[included], scores[~included]).to_dict(),
        "guesses": run.guesses,
        "correct": run.correct,
        "epsilon": run.epsilon,
        "curve_guesses": run.curve_guesses,
        "curve_correct": run.curve_correct,
        "epsilon_fdp": run.curve_epsilon,
        "refuted": False,
        "sentence": (
            f"{run.correct} of {run.guesses} guesses about 1000 planted patients were right, which "
            f"proves epsilon at least {proved:.2f}: they do not refute the claim of epsilon 3"
        ),
        "power": {"least": least, "sentence": power},
        "twin": twin,
    }
    ViewResult.from_dict(document, view)
    return document
