"""How likely held-out patients of a real cohort are: their steps, and their numbers of rows.

usage: held_out.py --scorer FOLDER [--epsilon 3] [--seeds 3] [--model M]
    [--without interactions,first-rows,trend]

Fits diabetes130 as `histories.py` does (see there for the two folders). Noise of counts depends on
the seed alone, and not on what is left out. Prints, for each fit and as means, the negative
log-likelihood of a held-out step (all columns, nats) and of a patient's number of rows given all
else that is known of her first one, and the AUC with which that law tells who comes again.

Left out may be: what two columns say together of the number of rows; what steps take over of first
rows; and that rows change little by little along numbers of rows, which are then columns as others.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from histories import Diabetes
from sklearn.metrics import roc_auc_score

from dpsynth.encoding import Histories
from dpsynth.models import histories_class
from dpsynth.models.histories import row_weights
from dpsynth.models.histories.persons import PersonNetwork, one_row_each
from dpsynth.models.histories.steps import log_linear
from dpsynth.models.histories.steps.rows import TableRows
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

OUT = {
    "interactions": (PersonNetwork, "with_crosses", lambda persons, *_: persons),
    "first-rows": (row_weights, "TAKEN", 0.0),
    "trend": (log_linear, "_root_along", lambda column, ordered, ends: _plain(column, ordered)),
}
MODELS = ("distilled", "autoregressive")
FIGURES = ("nats of a step", "nats of a number", "AUC of another row")


def _plain(column: Any, ordered: int) -> Any:
    return log_linear.PRIOR.root(column, ordered)


@contextmanager
def without(parts: list[str]) -> Iterator[None]:
    """Leave some parts out of a fit."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(patch.object(*OUT[part]))
        yield


@torch.no_grad()
def of_steps(generator: Any, histories: Histories) -> float:
    """Return the mean negative log-likelihood of a step, in nats."""
    ((model,),) = generator.models
    codes = generator.person.codes(histories)
    table = generator.domain.tables[0]
    rows = TableRows.of(table, histories.rows[0], codes, histories.ends)
    (steps,) = rows.coded([model.table])
    bins = np.column_stack([one.coarsen(steps[:, j]) for j, one in enumerate(model.bins)])
    return float(model.network.loss(torch.from_numpy(bins.astype(np.int64))[:, None], None).mean())


@torch.no_grad()
def of_numbers(generator: Any, histories: Histories) -> tuple[float, float]:
    """Return the mean negative log-likelihood of a number of rows, and the AUC of several."""
    persons = generator.network
    codes = one_row_each(generator.person.codes(histories).astype(np.uint16))
    bins = np.asarray(generator.binning.coarsen(codes)[:, 0]).astype(np.int64)
    rows, network = bins[:, persons.order], persons.network
    hot = network.one_hot(torch.from_numpy(rows))
    logits = network.logits(hot)
    if persons.crosses is not None:
        logits = logits + persons.crosses.pull(hot, logits.shape[1])
    laws = logits[:, -network.bins[-1] :].log_softmax(dim=1).numpy()
    several = histories.rows[0][0].counts(len(rows)) > 1
    one = np.bincount(rows[~several, -1]).argmax()
    auc = roc_auc_score(several, -laws[:, one])
    return float(-laws[np.arange(len(rows)), rows[:, -1]].mean()), float(auc)


def main() -> None:
    """Fit a few times over; print each fit's figures, and their means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scorer", required=True)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--model", choices=("distilled", "autoregressive"), default="autoregressive"
    )
    parser.add_argument("--without", default="", help=", ".join(OUT))
    options = parser.parse_args()
    sys.path.insert(0, options.scorer)
    from cohort_tables import load

    train, holdout, spec = load("diabetes130", os.environ["DPSYNTH_DATA"])
    source, strangers = Diabetes(train, spec), Diabetes(holdout, spec)
    assert (source.levels, source.words) == (strangers.levels, strangers.words), "codes differ"
    budget, found = PrivacyBudget(options.epsilon, 1e-5), []
    for seed in range(options.seeds):
        generator: Any = histories_class(options.model)(source.domain)
        plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
        with without([part for part in options.without.split(",") if part]):
            generator.fit(source.histories, plan, SeededEntropy(seed))
        steps = of_steps(generator, strangers.histories)
        found.append((steps, *of_numbers(generator, strangers.histories)))
        print(_line(found[-1]), flush=True)
    print("mean", _line(np.mean(found, axis=0)))


def _line(figures: Any) -> str:
    pairs = zip(FIGURES, figures, strict=True)
    return ", ".join(f"{name} {value:.4f}" for name, value in pairs)


if __name__ == "__main__":
    main()
