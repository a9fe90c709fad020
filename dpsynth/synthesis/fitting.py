"""The verb `fit`: from private tables to a run; `charged_fit` has its order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._util.torchrun import place_of
from dpsynth.errors import InputError
from dpsynth.files import check_apart
from dpsynth.ledger import Ledger, Use
from dpsynth.models import Progress, silent
from dpsynth.models.registry import AUTO, DEFAULT, NETWORK, names_of, spec_of
from dpsynth.policy import Policy
from dpsynth.privacy import Entropy, NonPrivatePlan, OsEntropy
from dpsynth.privacy.plan import NOMINAL_BUDGET, STAMP
from dpsynth.schema import AnySchema, Schema, load_any
from dpsynth.synthesis.charged_fit import Terms, charged_fit, claim_of, require_saved
from dpsynth.synthesis.execution import Execution
from dpsynth.synthesis.fit_cost import unadvised
from dpsynth.synthesis.preparation import prepare, require_small_delta
from dpsynth.synthesis.readers import TableReader, open_reader
from dpsynth.synthesis.run import Run
from dpsynth.tables import Source, as_source, open_table

if TYPE_CHECKING:
    from dpsynth.models.dpsgd import Ranks


@shown_in_notebooks
def fit(
    data: Source | Mapping[str, Source],
    schema: AnySchema | str | Path,
    *,
    epsilon: float,
    delta: float,
    dataset: str,
    model: str = DEFAULT,
    purpose: str = "",
    tier: str | None = None,
    policy: Policy | None = None,
    publish_quality: float | None = None,
    ledger: Ledger | None = None,
    without_ledger: bool = False,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
    execution: Execution | None = None,
    progress: Progress = silent,
    advise: Callable[[str], None] = unadvised,
) -> Run:
    """Learn a generator from private rows, under differential privacy for the schema's unit.

    Args:
        data: the path of a table, or a DataFrame of pandas, polars or Arrow; cells of text are
            safest, as `dpsynth.read_table` returns them. Of linked tables: a folder with a file for
            each table, a file or database with all of them, or the source of each by its name.
        schema: a `Schema` or a `LinkedSchema`, the path of one, or the name of a shipped one.
        epsilon: privacy budget; there is no default.
        delta: the probability that the guarantee of epsilon may miss; there is no default.
        dataset: the name under which the ledger counts what these patients have spent.
        model: a generator's name, or ``auto``: the one that suits the public facts.
        purpose: a few words for the ledger.
        tier: the kind of purpose, where the policy names some.
        policy: one to keep, where the ledger has adopted none; its own binds in any case.
        publish_quality: the share of the budget to set aside for public quality figures of a single
            table, which `publish_quality` spends once; None: none will be published.
        ledger: where to charge; the default ledger if None.
        without_ledger: charge nowhere; the run is stamped, and release refuses it.
        output: folder to save the run in; claimed before any charge, and refused if it exists,
            cannot be written, is another fit's, or has no room. If it cannot be saved there all the
            same, it is saved elsewhere, and the error says where.
        entropy: source of noise and sampling; OS entropy if None. Another source stamps the run.
        execution: where and how the work is done: processes, machines, disks, checkpoints; in this
            process and in memory if None.
        progress: called with a stage and its fraction done.
        advise: called before the charge with a sentence: about how long the fit will take on this
            machine, and how much memory. And with another if population and budget carry too
            little of the table.

    Returns:
        The run: all that was learned, and the certificate.

    Raises:
        InputError: schema, table, budget, output or execution are wrong. If rows had been read by
            then, the ledger counts the fit as spent. Or the fit needs more memory than this process
            can have, and nothing was charged.
        BudgetError: the ledger or its policy refuses.

    Warns:
        DpsynthWarning: the same file was read under another name, or the fit's entry in the ledger
            could not be closed; either way the run is good.

    >>> from dpsynth.ledger import Ledger
    >>> from dpsynth.tables import simulate
    >>> ledger = Ledger.create("ledger.sqlite")
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "ledger": ledger}
    >>> run = fit(simulate(200, seed=1), "demo", model="mixture", **budget)
    >>> run.certificate["epsilon"], len(run.sample(100))
    (3.0, 100)
    """
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    prepared = prepare(
        schema, epsilon=epsilon, delta=delta, model=model, publish_quality=publish_quality
    )
    require_small_delta(schema, epsilon, delta)
    execution = execution or Execution()
    use = Use(dataset, purpose, tier, policy)
    paid = (use, ledger, without_ledger, output, entropy)
    terms = Terms(*paid, execution, progress, advise)
    with open_reader(data, prepared, execution, progress) as reader:
        return charged_fit(prepared, reader, terms)


@shown_in_notebooks
def fit_not_private(
    data: Source,
    schema: Schema | str | Path,
    *,
    model: str = NETWORK,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
    progress: Progress = silent,
) -> Run:
    """Learn a neural generator WITHOUT privacy: a reference that shows what the noise costs.

    Counts are exact and gradients are neither clipped nor noised; all else is as in `fit`. Nothing
    is charged, because no budget covers it: the run has no certificate, is stamped ``not-private``,
    and `release` refuses it. It may reveal patients, and so may every table drawn from it.

    Args:
        data: the path of a table, or a DataFrame of pandas, polars or Arrow; cells of text are
            safest, as `dpsynth.read_table` returns them.
        schema: a `Schema`, the path of one, or the name of a shipped one.
        model: a neural generator's name; ``auto`` stands for the default network.
        output: folder to save the run in; refused at once if it exists.
        entropy: source of sampling; OS entropy if None.
        progress: called with a stage and its fraction done.

    Raises:
        InputError: the model is not a neural one, or schema, table or output are wrong.

    >>> from dpsynth.tables import simulate
    >>> run = fit_not_private(simulate(200, seed=1), "demo")
    >>> run.model, run.stamps
    ('autoregressive', ('not-private',))
    """
    data = as_source(data)
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    if any(column.discovers for column in schema.modelled):
        raise InputError(
            "codes are discovered under a privacy budget only; for a fit without privacy, declare "
            "them in a list, and remove discover"
        )
    model = NETWORK if model == AUTO else model
    if not spec_of(model).neural:
        neural = ", ".join(names_of(lambda spec: spec.neural))
        raise InputError(
            f"model '{model}' cannot be fitted without privacy; choose one of {neural}"
        )
    epsilon, delta = NOMINAL_BUDGET.epsilon, NOMINAL_BUDGET.delta
    prepared = prepare(schema, epsilon=epsilon, delta=delta, model=model)
    reader = TableReader((data,), prepared.codec, open_table(data, schema), progress=progress)
    if output is not None:
        check_apart(output)  # it may reveal patients
    entropy = entropy or OsEntropy()
    with claim_of(output, prepared) as claim:
        cohort = reader.read(entropy)
        terms = NonPrivatePlan(prepared.plan)
        generator = prepared.generator().fit(cohort, terms, entropy, progress)
        run = Run(
            schema=schema,
            model=model,
            config=generator.config(),
            arrays=generator.arrays(),
            certificate=None,
            stamps=(STAMP,) if type(entropy) is OsEntropy else (STAMP, "seeded-entropy"),
        )
        saved = None if claim is None else claim.save(run.save)
    require_saved(saved, charged_as=None)
    return run


def assisted() -> bool:
    """Do the part of a rank other than 0 in a fit; return False at once in any other process.

    Raises:
        InputError: some of the processes are on other machines.
        DpsynthError: rank 0 ended before the last step.
    """
    place = place_of()
    if place.rank == 0:
        return False
    from dpsynth.models.dpsgd import joined
    from dpsynth.models.generators import assist

    with joined(place) as ranks:
        assist(ranks)
    return True


@contextmanager
def first_of_ranks() -> Generator[Ranks | None, None, None]:
    """Join the other ranks, for `fit`; without ``torchrun``, yield None.

    Raises:
        InputError: some of the processes are on other machines.
    """
    place = place_of()
    if place.size == 1:
        yield None
        return
    from dpsynth.models.dpsgd import joined

    with joined(place) as ranks:
        yield ranks
