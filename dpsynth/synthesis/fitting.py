"""The verb `fit`: from private tables to a run; `charged_fit` has its order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpsynth._util.engines import Engine, open_engine
from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._util.torchrun import place_of
from dpsynth.encoding import (
    AnyRows,
    Histories,
    find_codes,
    find_codes_of_patients,
    in_memory,
    read_cohort,
    read_histories,
    read_shards,
    usual_workers,
)
from dpsynth.errors import InputError
from dpsynth.files import check_apart
from dpsynth.ledger import Ledger, Use
from dpsynth.models import DISCOVERY, Progress, silent
from dpsynth.models.registry import AUTO, DEFAULT, NETWORK, SPECS
from dpsynth.policy import Policy
from dpsynth.privacy import CodeDiscovery, Entropy, NonPrivatePlan, OsEntropy
from dpsynth.privacy.plan import NOMINAL_BUDGET, STAMP
from dpsynth.schema import (
    AnySchema,
    LinkedSchema,
    Schema,
    as_declared,
    load_any,
    tables_as_declared,
)
from dpsynth.synthesis.charged_fit import (
    Completed,
    FindOnce,
    Terms,
    charged_fit,
    claim_of,
    require_saved,
)
from dpsynth.synthesis.fit_cost import unadvised
from dpsynth.synthesis.preparation import (
    Prepared,
    PreparedCohort,
    prepare,
    require_small_delta,
)
from dpsynth.synthesis.rows_apart import shards_folder, staying_rows
from dpsynth.synthesis.run import Run
from dpsynth.tables import (
    Divisible,
    Source,
    Table,
    as_source,
    files_of,
    linked_sources,
    open_linked,
    open_table,
)

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
    workers: int | None = 1,
    engine: str | None = None,
    shards: str | Path | None = None,
    in_warehouse: bool = False,
    progress: Progress = silent,
    checkpoints: str | Path | None = None,
    device: str = "cpu",
    ranks: Ranks | None = None,
    advise: Callable[[str], None] = unadvised,
    any_memory: bool = False,
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
        workers: processes that read a large file at once; None for one for each core where there
            is a large file. They are spawned, so a script that asks for several needs its
            ``if __name__ == "__main__":``. The run does not depend on them. This option, and the
            next three, ``device`` and ``ranks`` are for a single table.
        engine: a cluster of Dask that reads the file instead, ``dask://HOST:PORT``, and with
            ``shards`` caps and counts rows too; docs/cluster.md says what it has to see. The run
            does not depend on it. Noise is added in this process.
        shards: folder in which coded rows are kept on the disk, in a private folder that is removed
            at the end, and not in memory. Not for ``ctgan``, and without ``ranks``. With
            ``engine``, all its machines have to see it under the same path. If None, this is done
            for files of 256 MB or more, in the system's folder of temporary files, without
            ``engine``.
        in_warehouse: let the rows stay in their database, DuckDB or PostgreSQL, which codes and
            counts them by SQL. For ``mixture`` and ``independent``.
        progress: called with a stage and its fraction done.
        checkpoints: folder where the fit of a network keeps its state, for its owner alone. After
            a kill, the same call goes on from there, within the same entry of the ledger. It is
            removed at the end. Needs ``output`` and a ledger.
        device: where a network trains: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one.
            The noise is drawn on the processor either way.
        ranks: other processes that take the private steps of a network as well; `first_of_ranks`
            gives those that ``torchrun`` started.
        advise: called before the charge with a sentence: about how long the fit will take on this
            machine, and how much memory.
        any_memory: try a fit also where it needs more memory than this process can have, about.

    Returns:
        The run: all that was learned, and the certificate.

    Raises:
        InputError: schema, table, budget, output or engine are wrong. If rows had been read by
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
    use = Use(dataset, purpose, tier, policy)
    paid = (use, ledger, without_ledger, output, entropy, progress)
    terms = Terms(*paid, checkpoints, device, ranks, advise, any_memory)
    if isinstance(schema, LinkedSchema):
        assert isinstance(prepared, PreparedCohort)
        _refuse_for_linked(
            {
                "workers": workers not in (None, 1),
                "engine": engine,
                "shards": shards,
                "in_warehouse": in_warehouse,
                "device": device not in ("cpu", "auto"),
                "ranks": ranks,
            }
        )
        return _fit_linked(data, schema, prepared, replace(terms, depth=terms.depth + 1))
    assert isinstance(prepared, Prepared)
    source = as_source(cast(Source, data))
    schema = as_declared(schema)
    table = open_table(source, schema)
    paths = files_of(table.path) if isinstance(table, Divisible) else []
    workers = usual_workers(source) if workers is None else workers
    if in_warehouse:
        if shards is not None or engine is not None:
            raise InputError(
                "rows that stay in a warehouse need neither engine nor shards; leave them out"
            )
        terms = replace(terms, in_memory=False)
        with staying_rows(table, schema, prepared, progress) as counted:
            return charged_fit(schema, prepared, [source], lambda noise, _: counted(noise), terms)
    shared, distant = ranks is not None, engine is not None
    rows, kept_in = schema.rows.value, partial(shards_folder, source, prepared, shards)
    with kept_in(rows=rows, ranks=shared, distant=distant) as folder:
        reader = open_engine(engine, workers, paths=paths, folder=folder)
        terms = replace(terms, in_memory=folder is None)
        read = partial(_read_all, table, schema, prepared, engine=reader, folder=folder)
        return charged_fit(
            schema,
            prepared,
            [source],
            lambda noise, find_once: read(noise, progress, find_once=find_once),
            terms,
        )


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
    if model not in (neural := [spec.name for spec in SPECS if spec.neural]):
        raise InputError(
            f"model '{model}' cannot be fitted without privacy; choose one of {', '.join(neural)}"
        )
    epsilon, delta = NOMINAL_BUDGET.epsilon, NOMINAL_BUDGET.delta
    prepared = prepare(schema, epsilon=epsilon, delta=delta, model=model)
    table = open_table(data, schema)
    if output is not None:
        check_apart(output)  # it may reveal patients
    entropy = entropy or OsEntropy()
    with claim_of(output, prepared, schema) as claim:
        cohort = in_memory(_read(table, schema, prepared, entropy, progress))
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


def _read(
    table: Table,
    schema: Schema,
    prepared: Prepared,
    entropy: Entropy,
    progress: Progress,
    engine: Engine | None = None,
    folder: Path | None = None,
) -> AnyRows:
    def done(part: float) -> None:
        progress("reading", part)

    read = (table, prepared.codec, schema, entropy)
    if folder is not None:
        return read_shards(*read, folder, progress=done, engine=engine)
    return read_cohort(*read, done, engine=engine)


def _read_all(
    table: Table,
    schema: Schema,
    prepared: Prepared,
    entropy: Entropy,
    progress: Progress,
    engine: Engine,
    folder: Path | None,
    find_once: FindOnce,
) -> AnyRows | Completed:
    """Find codes first, where the plan has an event for it; then read rows as coded by them."""
    if not prepared.plan.has(DISCOVERY):
        return _read(table, schema, prepared, entropy, progress, engine, folder)
    event = prepared.plan.event(DISCOVERY)
    assert isinstance(event, CodeDiscovery)
    told = partial(progress, "finding codes")
    codes_found = find_once(
        lambda before_noise: find_codes(table, schema, event, entropy, told, before_noise)
    )
    found = {name: tuple(codes) for name, codes in codes_found.items()}
    prepared = prepared.with_codes(schema, found)
    complete = prepared.codec.published
    cohort = _read(table, complete, prepared, entropy, progress, engine, folder)
    return Completed(complete, prepared.generator(), cohort)


def _fit_linked(data: Any, schema: LinkedSchema, prepared: PreparedCohort, terms: Terms) -> Run:
    """Fit the histories of linked tables; see `fit`."""
    sources = linked_sources(data, schema)
    schema = tables_as_declared(schema)
    tables = open_linked(sources, schema)
    progress = terms.progress

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

    return charged_fit(schema, prepared, sources.values(), read, terms)


def _refuse_for_linked(options: Mapping[str, object]) -> None:
    """Refuse what fits of linked tables do not have.

    Raises:
        InputError: names the first of these options.
    """
    for name, value in options.items():
        if value:
            raise InputError(
                f"{name} is for a single table; a fit of linked tables reads and trains in this "
                f"process: leave {name} out"
            )


def _histories(
    tables: Mapping[str, Table], prepared: PreparedCohort, entropy: Entropy, progress: Progress
) -> Histories:
    return read_histories(
        tables, prepared.codec, entropy, progress=lambda part: progress("reading", part)
    )


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
