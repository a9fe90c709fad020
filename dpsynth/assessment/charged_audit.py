"""An audit of the training among real rows: a fit of its own, planned, reserved, charged.

Canaries are planted among the rows of the source, and the run's generator is fitted to both, under
a plan of the run's budget, which the ledger counts as any fit's. The attacker sees what such a fit
keeps, and nothing else of it (black box); what was learned is thrown away. The result is internal.
"""

from __future__ import annotations

import numpy as np

from dpsynth.assessment.training_audit import (
    CANARIES,
    PlantedRows,
    canaries,
    check_canaries,
    claim_of,
    trial,
)
from dpsynth.encoding import read_cohort
from dpsynth.errors import InputError
from dpsynth.eval import Progress, silent
from dpsynth.eval.attack_stats import Attack
from dpsynth.eval.attacks import Scored, training
from dpsynth.ledger import Ledger, Use, charged, compare_source
from dpsynth.models import generator_class
from dpsynth.privacy import OsEntropy
from dpsynth.synthesis import Run, prepare, require_small_delta
from dpsynth.tables import Source, as_source, open_table


def audited_on_real(
    run: Run,
    data: Source,
    use: Use,
    *,
    ledger: Ledger,
    count: int = CANARIES,
    seed: int = 0,
    progress: Progress = silent,
) -> Attack:
    """Fit the run's generator to real rows and canaries, and guess which canaries were in.

    Args:
        run: whose model, schema and budget are used; its weights are not.
        data: the rows that it learned from.
        use: the dataset under which the ledger counts this fit, and its purpose.
        ledger: where to charge.
        count: canaries.
        seed: of the canaries and their coins; the noise has none.
        progress: called with a stage and its fraction done.

    Raises:
        InputError: the run has no budget, or the table is wrong.
        BudgetError: the ledger or its policy refuses.
    """
    data, certificate = as_source(data), run.certificate
    if certificate is None:
        raise InputError(
            "the run was fitted without privacy: an audit on real rows needs the budget of one"
        )
    check_canaries(count)
    require_small_delta(run.schema, certificate["epsilon"], certificate["delta"])
    model = run.model
    prepared = prepare(
        run.schema, epsilon=certificate["epsilon"], delta=certificate["delta"], model=model
    )
    table = open_table(data, run.schema)
    rng = np.random.default_rng(seed)
    planted = canaries(prepared.domain, count, rng)
    baseline = generator_class(model).restore(prepared.domain, run.config, run.arrays)
    with charged(
        ledger, prepared.plan, run.schema, model, use, networks=prepared.networks
    ) as charges:
        if (opened := charges.first) is not None:
            compare_source(ledger, opened.entry, data)
        entropy = OsEntropy()
        cohort = read_cohort(
            table, prepared.codec, run.schema, entropy, lambda part: progress("reading", part)
        )
        charges.require_open()
        outcome = trial(
            prepared.generator(),
            prepared.plan,
            PlantedRows(cohort, planted, baseline),
            rng=rng,
            entropy=entropy,
            observer=None,
            progress=progress,
        )
    return training(
        claim_of(prepared.plan),
        {"black": Scored(outcome.included, outcome.black)},
        {},
        prepared.plan.epsilon,
        {"background": "real", "model": run.model, "seconds": round(outcome.seconds, 1)},
    )
