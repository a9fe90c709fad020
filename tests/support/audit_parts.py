"""The parts of the made-up audit: what each attack measured, found, and could have seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsynth.eval.attack_stats import (
    Finding,
    Power,
    Roc,
    Success,
    audited,
    ceiling,
    ceiling_auc,
    described,
)
from dpsynth.eval.attack_stats.result import ALARMS
from dpsynth.eval.core import Estimate, Measure, Rate

from .evaluation_example import bell

Json = dict[str, Any]


CLAIM = (3.0, 1e-6)


MEANING = "What it counts, in one plain sentence."


ATTACKS = {
    "distance": "Distance to the closest synthetic row",
    "density": "Density of the synthetic table around a patient, against the population",
    "queries": "Counts of a patient's values, weighed by a classifier",
    "ensemble": "All of these together",
}


GROUPS = {
    "everyone": ("everyone", 1200),
    "outliers": ("patients like nobody else", 60),
    "rare": ("patients with rare codes", 90),
    "visits": ("patients with most visits", 110),
}


class Draft:
    """An audit that is being written down."""

    def __init__(self) -> None:
        self.measures: Json = {}
        self.findings: list[Json] = []
        self.powers: list[Json] = []

    def measure(self, key: str, title: str, estimate: Estimate, best: float) -> None:
        self.measures[key] = Measure(key, title, estimate, best, MEANING).to_dict()

    def found(self, finding: Finding, power: Power) -> None:
        self.findings.append(finding.to_dict())
        self.powers.append(power.to_dict())

    def success(self, key: str, title: str, what: str, *hits: int) -> Json:
        success = Success(Rate(hits[0], hits[2]), Rate(hits[1], hits[2]))
        self.found(success.finding(key, title, what), success.power(key))
        return success.to_dict()


def scores(apart: float, people: int, seed: int) -> Roc:
    """Return scores of members that lie so many deviations above those of non-members."""
    rng = np.random.default_rng(seed)
    members, non_members = rng.standard_normal((2, people))
    return Roc(members + apart, non_members)


def memorization(draft: Draft, copied: int) -> Json:
    """Return copies, distances, unique people and outliers."""
    words = "Patients with a row equal to a synthetic row"
    equal = draft.success("memorization:copies", words, "some row is repeated", copied, 9, 1200)
    near = draft.success(
        "memorization:near",
        "Nearly equal rows",
        "some row is nearly repeated",
        copied + 20,
        31,
        1200,
    )
    unique = draft.success(
        "memorization:unique", "Unique combinations repeated", "it is repeated", 4, 3, 410
    )
    roc = scores(0.05, 60, 1)
    sentence = f"synthetic rows lie no nearer than chance allows (AUC {roc.auc.value:.3f})"
    draft.found(
        Finding("memorization:outliers", "Unusual people", False, sentence),
        Power("memorization:outliers", roc.least(), "auc", f"an AUC of {roc.least():.3f}"),
    )
    draft.measure("copies_units", words, Success(Rate(copied, 1200), Rate(9, 1200)).excess, 0.0)
    draft.measure("closer", "Nearer", Estimate(0.506, 0.492, 0.52, 2400, reference=0.5), 0.5)
    draft.measure("distance_ratio", "Ratio", Estimate(0.83, 0.81, 0.85, 1200, reference=0.84), 0.84)
    levels = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9]
    return {
        "units": 1200,
        "rows": {"source": 2214, "holdout": 2190, "synthetic": 4000},
        "distances": {
            "levels": levels,
            "source": [0.021, 0.052, 0.07, 0.11, 0.16, 0.21, 0.26],
            "holdout": [0.022, 0.052, 0.071, 0.11, 0.161, 0.211, 0.259],
        },
        "histogram": {
            "edges": [round(0.01 * k, 4) for k in range(41)],
            "source": bell(40, 16.2, 5.6),
            "holdout": bell(40, 16.4, 5.6),
        },
        "ratios": {
            "levels": levels,
            "source": [0.3, 0.48, 0.57, 0.71, 0.83, 0.92, 0.97],
            "holdout": [0.31, 0.49, 0.58, 0.71, 0.84, 0.92, 0.97],
        },
        "copies": [
            {"what": words, "success": equal},
            {"what": "Patients with a row nearly equal to one", "success": near},
        ],
        "unique": [{"columns": ["age", "sex", "postcode"], "success": unique}],
        "outliers": {"units": {"source": 60, "holdout": 60}, "auc": roc.auc.to_dict()},
    }


def membership(draft: Draft, apart: float) -> Json:
    """Return four attackers, each on everyone and on three exposed groups."""
    attacks = []
    for place, (key, title) in enumerate(ATTACKS.items()):
        for group, (words, people) in GROUPS.items():
            roc = scores(apart * (0.5 + 0.2 * place), people, 10 * place + people)
            one = {"key": key, "title": title, "group": group, "group_title": words}
            one |= {"members": people, "strangers": people, **roc.to_dict(), "epsilon": None}
            if group == "everyone":
                both = np.concatenate([roc.members, roc.non_members])
                run = audited(both, np.arange(2 * people) < people, CLAIM[1])
                one["epsilon"] = {"value": run.epsilon, "guesses": run.guesses}
                one["epsilon"] |= {"correct": run.correct}
                verb = "more than chance allows" if roc.found else "no more than chance allows"
                sentence = f"AUC {roc.auc.value:.3f} for everyone: {verb}"
                words = f"would have been seen with probability 90% at an AUC of {roc.least():.3f}"
                draft.found(
                    Finding(f"membership:{key}", title, roc.found, sentence),
                    Power(f"membership:{key}", roc.least(), "auc", words),
                )
                draft.measure(f"auc:{key}", f"{title}: AUC", roc.auc, 0.5)
            attacks.append(one)
    grid = np.geomspace(1 / 2400, 1.0, 60)
    at = [{"fpr": a, "tpr": float(ceiling(*CLAIM, np.array([a]))[0])} for a in ALARMS]
    curve = {"fpr": grid.tolist(), "tpr": ceiling(*CLAIM, grid).tolist()}
    allowed = {"epsilon": CLAIM[0], "delta": CLAIM[1], "auc": ceiling_auc(*CLAIM), "rates": at}
    people = {"members": 1200, "strangers": 1200, "reference": 900}
    return {**people, "attacks": attacks, "ceiling": {**allowed, "roc": curve}}


def training(draft: Draft) -> Json:
    """Return canaries, seen from two places."""
    views = []
    for view, apart, least in (("black", 0.15, None), ("white", 1.1, 5.4)):
        roc = scores(apart, 500, 7)
        run = audited(
            np.concatenate([roc.members, roc.non_members]), np.arange(1000) < 500, CLAIM[1]
        )
        proved = max(run.epsilon, run.curve_epsilon)
        title = f"Canaries, {view} box"
        sentence = (
            f"{run.correct} of {run.guesses} guesses about 1000 planted patients were right, which "
            f"proves epsilon at least {proved:.2f}: they do not refute the claim of epsilon 3"
        )
        words = "would not have seen a leak of epsilon 12 reliably, which a twin of the fit had"
        if least is not None:
            words = f"would have refuted the claim with probability 90% at epsilon {least} or more"
        draft.found(
            Finding(f"training:{view}", title, False, sentence),
            Power(f"training:{view}", least, "epsilon", words),
        )
        estimate = Estimate(proved, None, None, 1000, reference=CLAIM[0])
        draft.measure(f"training_epsilon_{view}", f"{title}: epsilon proved", estimate, 0.0)
        twin = scores(apart * 2, 500, 8)
        views.append(
            {
                "view": view,
                "title": title,
                **roc.to_dict(),
                "guesses": run.guesses,
                "correct": run.correct,
                "epsilon": run.epsilon,
                "curve_guesses": run.curve_guesses,
                "curve_correct": run.curve_correct,
                "epsilon_fdp": run.curve_epsilon,
                "twin": {"epsilon": 12.0, "auc": twin.auc.to_dict(), "proved": 2.1 * apart},
            }
        )
    return {
        "background": "run",
        "model": "tvae",
        "claim": {"epsilon": CLAIM[0], "delta": CLAIM[1]},
        "canaries": 1000,
        "included": 500,
        "views": views,
        "seconds": 412.0,
    }


def guesses(draft: Draft) -> Json:
    """Return attributes, links and descriptions."""
    attribute = [
        {
            "column": column,
            "known": ["age", "sex", "postcode"],
            "attack": attack,
            "title": title,
            "baseline": described(Rate(hits[1] - 3, 1200)),
            "success": draft.success(
                f"attribute:{column}", f"Guess of {column}", "it was guessed rightly", *hits, 1200
            ),
        }
        for column, attack, title, hits in (
            ("diagnosis", "nearest", "the nearest row, knowing the quasi-identifiers", (421, 413)),
            ("hiv", "model", "a model, knowing the quasi-identifiers", (1136, 1131)),
        )
    ]
    link = draft.success("linkability", "Linkability", "both halves lead to one row", 31, 27, 1200)
    halves = {"first": ["age", "sex"], "second": ["diagnosis", "drug", "visits"]}
    kinds = [
        {
            "kind": kind,
            "title": f"Singling out by {words}",
            "predicates": 2000,
            "success": draft.success(
                f"singling_out:{kind}", f"Singling out by {words}", "it fits one", *hits, 1200
            ),
        }
        for kind, words, hits in (("one", "one column", (6, 8)), ("many", "several", (44, 39)))
    ]
    draft.measure("linkability", "Linkability", Success(Rate(31, 1200), Rate(27, 1200)).excess, 0.0)
    return {
        "attribute": {"columns": attribute},
        "linkability": {"splits": [{**halves, "neighbours": 5, "success": link}]},
        "singling_out": {"kinds": kinds},
    }


def shadows(draft: Draft) -> Json:
    """Return shadow models."""
    roc = scores(0.1, 40, 5)
    words = f"would have been seen with probability 90% at an AUC of {roc.least():.3f} or more"
    draft.found(
        Finding("shadows", "Shadow models", roc.found, f"AUC {roc.auc.value:.3f}"),
        Power("shadows", roc.least(), "auc", words),
    )
    draft.measure("shadows_auc", "Shadow models: AUC", roc.auc, 0.5)
    curve = roc.to_dict()
    found = {"targets": 40, "models": 320, "auc": curve["auc"], "roc": curve["roc"]}
    return found | {"epsilon": 0.0, "minutes": 58.4}
