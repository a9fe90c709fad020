"""The verb `fit_cohort`: from linked tables of patients to a run; `charged_fit` has its order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from dpsynth._util.notebook import shown_in_notebooks
from dpsynth.encoding import Histories, find_codes_of_patients, read_histories
from dpsynth.ledger import Ledger, Use
from dpsynth.models import DISCOVERY, Progress, silent
from dpsynth.models.registry import AUTO
from dpsynth.policy import Policy
from dpsynth.privacy import CodeDiscovery, Entropy
from dpsynth.schema import LinkedSchema, tables_as_declared
from dpsynth.synthesis.charged_fit import Completed, FindOnce, Terms, charged_fit
from dpsynth.synthesis.cohort_preparation import PreparedCohort, prepare_cohort
from dpsynth.synthesis.cohort_run import CohortRun
from dpsynth.synthesis.fit_cost import unadvised
from dpsynth.synthesis.preparation import require_small_delta
from dpsynth.tables import Source, Table, linked_sources, open_linked


@shown_in_notebooks
def fit_cohort(
    data: str | Path | Mapping[str, Source],
    schema: LinkedSchema | str | Path,
    *,
    epsilon: float,
    delta: float,
    dataset: str,
    model: str = AUTO,
    purpose: str = "",
    tier: str | None = None,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    without_ledger: bool = False,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
    progress: Progress = silent,
    checkpoints: str | Path | None = None,
    advise: Callable[[str], None] = unadvised,
    any_memory: bool = False,
) -> CohortRun:
    """Learn a generator of whole histories from linked tables, under privacy for each patient.

    Args:
        data: a folder with a file for each table, or the source of each by the table's name.
        schema: a `LinkedSchema`, the path of one, or the name of a shipped one.
        epsilon: privacy budget; there is no default.
        delta: the probability that the guarantee of epsilon may miss; there is no default.
        dataset: the name under which the ledger counts what these patients have spent.
        model: ``cohort``, ``distilled`` or ``autoregressive``, or ``auto``, which chooses by public
            facts.
        purpose: as of `dpsynth.fit`, like all that follow.
        tier: the kind of purpose.
        policy: one to keep.
        ledger: where to charge.
        without_ledger: charge nowhere.
        output: folder to save the run in.
        entropy: source of noise and sampling.
        progress: called with a stage and its fraction done.
        checkpoints: folder where the fit of ``autoregressive`` keeps its state.
        advise: called before the charge with what the fit will take.
        any_memory: try a fit also where it needs more memory than this process can have, about.

    Returns:
        The run: all that was learned, and the certificate.

    Raises:
        InputError: schema, tables, budget or output are wrong. If rows had been read by then, the
            ledger counts the fit as spent. Or the fit needs more memory than this process can have.
        BudgetError: the ledger or its policy refuses.

    Warns:
        DpsynthWarning: as `dpsynth.fit`.
    """
    schema = schema if isinstance(schema, LinkedSchema) else LinkedSchema.load(schema)
    prepared = prepare_cohort(schema, epsilon=epsilon, delta=delta, model=model)
    require_small_delta(schema, epsilon, delta)
    sources = linked_sources(data, schema)
    schema = tables_as_declared(schema)
    tables = open_linked(sources, schema)

    def read(source: Entropy, find_once: FindOnce) -> Histories | Completed:
        if not prepared.plan.has(DISCOVERY):
            return _histories(tables, prepared, source, progress)
        event = prepared.plan.event(DISCOVERY)
        assert isinstance(event, CodeDiscovery)
        told = partial(progress, "finding codes")
        found = find_once(
            lambda before_noise: find_codes_of_patients(
                tables, schema, event, source, told, before_noise
            )
        )
        codes = {
            table: {column: tuple(listed) for column, listed in columns.items()}
            for table, columns in found.items()
        }
        complete, again = prepared.with_codes(schema, codes)
        histories = _histories(tables, again, source, progress)
        return Completed(complete, again.generator(), histories)

    use = Use(dataset, purpose, tier, policy)
    terms = Terms(
        *(use, ledger, without_ledger, output, entropy, progress, checkpoints),
        advise=advise,
        any_memory=any_memory,
    )
    return charged_fit(CohortRun, schema, prepared, sources.values(), read, terms)


def _histories(
    tables: Mapping[str, Table], prepared: PreparedCohort, entropy: Entropy, progress: Progress
) -> Histories:
    return read_histories(
        tables, prepared.codec, entropy, progress=lambda part: progress("reading", part)
    )
