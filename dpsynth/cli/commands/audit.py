"""``dpsynth audit``: attack a synthetic table, and the training it came from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth.cli.commands.audit_summary import end, lines_of, values_of
from dpsynth.cli.console import Console, output_options
from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dpsynth.assessment import Deep, Paid, Plugin
    from dpsynth.eval.attack_stats import Attack
    from dpsynth.schema import Schema
    from dpsynth.synthesis import Run

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # see dpsynth.cli.evaluate

MINUTES = 30.0


@click.command(
    epilog="Example:  dpsynth audit run/ train.csv --synthetic out.parquet --holdout holdout.csv "
    "-o internal/"
)
@click.argument("subject", metavar="RUN|SCHEMA")
@click.argument("data", type=click.Path(), required=False)
@click.option("--synthetic", type=click.Path(), help="The table to attack.")
@click.option("--train", type=click.Path(), help="Another way to name DATA.")
@click.option("--holdout", type=click.Path(), help="Real rows of people who are not in DATA.")
@click.option("--output", "-o", type=click.Path(), help="Folder for the findings and the page.")
@click.option("--force", is_flag=True, help="Replace an earlier audit in that folder.")
@click.option(
    "--seed", default=0, show_default=True, help="Seed for people and canaries; noise has none."
)
@click.option(
    "--canaries", default=1_000, show_default=True, help="Planted patients, half of them in."
)
@click.option("--no-training", is_flag=True, help="Attack the table only; plant no canaries.")
@click.option(
    "--background",
    type=click.Choice(("run", "real")),
    default="run",
    show_default=True,
    help="Rows around the canaries: drawn from the run (free, public), or DATA: a fit of its own, "
    "charged to --dataset, internal.",
)
@click.option("--dataset", help="With --background real: the ledger counts the fit under it.")
@click.option("--deep", is_flag=True, help="Also train shadow models; takes --budget-minutes.")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="NAME",
    help="An attack of another installed package; repeatable. Default: all.",
)
@click.option("--no-plugins", is_flag=True, help="Make no attack of another package.")
@click.option("--budget-minutes", type=float, help=f"Time for shadow models; default: {MINUTES:g}.")
@output_options
def audit(
    subject: str,
    data: str | None,
    synthetic: str | None,
    train: str | None,
    holdout: str | None,
    output: str | None,
    force: bool,
    seed: int,
    canaries: int,
    no_training: bool,
    background: str,
    dataset: str | None,
    deep: bool,
    plugins: tuple[str, ...],
    no_plugins: bool,
    budget_minutes: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Attack a release before somebody else does, and say what the attacks could have seen.

    With a RUN alone, its training is audited: canaries among rows that are drawn from the run; no
    real row is read, and the result goes along with a bundle. With DATA, --synthetic and --holdout,
    the table is attacked too: memorisation, membership, attributes, linkage, singling out, and by
    attacks of other installed packages. SCHEMA serves for tables of other tools. What is found in
    tables is INTERNAL. Every audit plays controls. Exit code 3 if an attack succeeded, or if a
    control failed.
    """
    from dpsynth.assessment import attack_audit as verbs
    from dpsynth.assessment import check_canaries
    from dpsynth.assessment.results_folder import PAGE

    with Console(as_json=as_json, quiet=quiet) as console:
        if data is not None and train is not None:
            raise click.UsageError("DATA and --train are the same: give one")
        source = data or train
        if budget_minutes is not None and not deep:
            raise click.UsageError("--budget-minutes is for --deep")
        if force and output is None:
            raise click.UsageError("--force is for -o: it replaces what is there")
        schema, run = _subject(subject)
        _check(run, source, synthetic, holdout, background, dataset, deep, no_training)
        trained, paid = None, None
        if run is not None and not no_training and background == "run":
            trained = verbs.Trained(Path(subject), canaries)
        added = _plugins(plugins, no_plugins, source is not None and synthetic is not None, console)
        real = _real(subject, run, source, synthetic, holdout)
        shadows = None
        if deep:
            folder = Path(f"{Path(output)}.shadows") if output else None
            minutes = MINUTES if budget_minutes is None else budget_minutes
            shadows = _shadows(schema, run, folder, minutes, seed, console)
        if background == "real":
            assert run is not None and source is not None and dataset is not None
            check_canaries(canaries)
            if output is None:
                raise click.UsageError("--background real is paid for: name a folder for it (-o)")
            told = run.certificate or {}
            console.advice(
                f"The canaries among real rows are a fit of their own: epsilon "
                f"{told.get('epsilon')}, delta {told.get('delta')}, charged to {dataset}."
            )
            paid = _on_real(run, source, dataset, canaries, seed)
        document = verbs.audit_run(
            schema,
            real=real,
            trained=trained,
            paid=paid,
            deep=shadows,
            plugins=added,
            seed=seed,
            output=output,
            overwrite=force,
            progress=console.progress,
        )
        lines = lines_of(document)
        if output is not None:
            lines += ["", f"page        {Path(output) / PAGE}"]
        if trained is not None:
            lines.append(f"public      {Path(subject) / 'audit.json'}: the training's audit")
        values = {"internal": True, "output": output} | values_of(document)
        console.result("audit", values, lines)
        for note in document["notes"]:
            console.advice(f"Note: {note}")
        if real is not None or background == "real":
            console.advice("Internal: computed from real rows. Do not release.")
            if output is None:
                console.advice("Nothing internal was written; -o FOLDER keeps findings and page.")
        end(document)


def _subject(subject: str) -> tuple[Schema, Run | None]:
    from dpsynth.schema import Schema
    from dpsynth.synthesis import Run
    from dpsynth.synthesis.run import DOCUMENT

    if (Path(subject) / DOCUMENT).exists():
        run = Run.load(subject)
        return run.schema, run
    if Path(subject).is_dir():
        raise InputError(f"{subject} is a folder, but no run; name a run or a schema")
    if Path(subject).name.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise InputError(f"{subject} is a table; the order is: audit RUN|SCHEMA DATA")
    return Schema.load(subject), None


def _check(
    run: Run | None,
    source: str | None,
    synthetic: str | None,
    holdout: str | None,
    background: str,
    dataset: str | None,
    deep: bool,
    no_training: bool,
) -> None:
    """Refuse what does not go together, before anything is read.

    Raises:
        UsageError: with what is missing or contradictory.
    """
    given = {"DATA": source, "--synthetic": synthetic, "--holdout": holdout}
    missing = [name for name, value in given.items() if value is None]
    if background == "real":
        if run is None or source is None or dataset is None or no_training:
            raise click.UsageError(
                "--background real plants canaries among DATA in a fit like the run's: it needs a "
                "RUN, DATA and --dataset"
            )
        if missing == ["--synthetic", "--holdout"]:
            missing = []
    elif dataset is not None:
        raise click.UsageError("--dataset is for --background real, which alone is charged")
    if 0 < len(missing) < 3:
        raise click.UsageError(f"to attack a table, give {', '.join(missing)} as well")
    if run is None and missing:
        raise click.UsageError("for a SCHEMA, give --synthetic, --train and --holdout")
    if missing and (deep or no_training):
        raise click.UsageError("to attack a table, give DATA, --synthetic and --holdout")


def _real(
    subject: str, run: Run | None, source: str | None, synthetic: str | None, holdout: str | None
) -> Any:
    from dpsynth.assessment import Candidate, Real, check_people

    if source is None or synthetic is None or holdout is None:
        return None
    if run is None:
        candidate = Candidate(Path(synthetic).name, synthetic)
    else:
        candidate = Candidate.of_run(subject, synthetic)
        check_people(run.schema, source, holdout)
    return Real(source, candidate, holdout)


def _plugins(names: tuple[str, ...], none: bool, tables: bool, console: Console) -> list[Plugin]:
    """Load the attacks of other packages before anything private is read, and name them.

    Raises:
        UsageError: the options contradict each other, or no table is attacked.
    """
    from dpsynth.assessment import load_plugins

    if names and none:
        raise click.UsageError("--plugin and --no-plugins contradict each other: give one")
    if names and not tables:
        raise click.UsageError("--plugin attacks tables: give DATA, --synthetic and --holdout")
    if none or not tables:
        return []
    loaded = load_plugins(names or None)
    for one in loaded:
        console.advice(
            f"Attack of another package: {one.attack.key}, of {one.package} {one.version}; leave "
            "it out by --no-plugins."
        )
    return loaded


def _shadows(
    schema: Schema,
    run: Run | None,
    folder: Path | None,
    minutes: float,
    seed: int,
    console: Console,
) -> Deep:
    """Return what makes shadow models; they are kept, so that an interrupted audit goes on."""
    if run is None or folder is None:
        raise click.UsageError("--deep trains the run's generator again: it needs a RUN and -o")

    def deep(tables: Any, progress: Any) -> Attack:
        from dpsynth.assessment import shadows

        told = run.certificate or {}
        return shadows(
            schema,
            run.generator,
            float(told.get("epsilon", 0.0)),
            float(told.get("delta", 0.0)),
            tables,
            folder=folder,
            budget_minutes=minutes,
            workers=os.cpu_count() or 1,
            seed=seed,
            not_private=run.certificate is None,
            announce=console.advice,
            progress=progress,
        )

    return deep


def _on_real(run: Run, source: str, dataset: str, canaries: int, seed: int) -> Paid:
    """Return what plants canaries among real rows, when all else is done; the ledger is at hand."""
    from dpsynth.assessment import audited_on_real
    from dpsynth.ledger import Use, default_ledger

    ledger = default_ledger(stacklevel=2)

    def paid(progress: Any) -> Attack:
        return audited_on_real(
            run,
            source,
            Use(dataset, "audit with canaries"),
            ledger=ledger,
            count=canaries,
            seed=seed,
            progress=progress,
        )

    return paid
