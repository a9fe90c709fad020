"""``dpsynth audit``: attack a synthetic table, and the training it came from."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import counted
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import refuse_options, takes_query, workers_option
from dpsynth.cli.subjects import run_or_schema
from dpsynth.errors import GateError
from dpsynth.eval.attacks import all_blind, failed_controls, false_alarms, sights, verdict_of

if TYPE_CHECKING:
    from dpsynth.assessment import Deep, Paid, Real
    from dpsynth.assessment.attack_plugins import Plugin
    from dpsynth.eval.attack_stats import Attack
    from dpsynth.schema import AnySchema, Schema
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
@click.option("--train", type=click.Path(), help="Same as DATA.")
@click.option("--holdout", type=click.Path(), help="Real rows of people who are not in DATA.")
@click.option("--output", "-o", type=click.Path(), help="Folder for the findings and their page.")
@click.option("--force", is_flag=True, help="Replace an earlier audit in that folder.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Seed for the choice of people and canaries; noise has no seed.",
)
@click.option(
    "--canaries",
    default=1_000,
    show_default=True,
    help="Candidate patients to plant; about half are included.",
)
@click.option(
    "--repeats",
    default=1,
    show_default=True,
    help="How often to audit the training again, with more canaries, where it could see no leak.",
)
@click.option("--no-training", is_flag=True, help="Attack the table only; plant no canaries.")
@click.option(
    "--background",
    type=click.Choice(("run", "real")),
    default="run",
    show_default=True,
    help="Rows around the canaries. run: drawn from the run; no budget, public result. real: DATA; "
    "a separate fit, charged to --dataset, internal result.",
)
@click.option("--dataset", help="With --background real: dataset to charge for the fit.")
@click.option("--deep", is_flag=True, help="Also train shadow models for --budget-minutes.")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="NAME",
    help="An attack of another installed package; repeatable. Default: all.",
)
@click.option("--no-plugins", is_flag=True, help="Run no attack of another package.")
@click.option("--budget-minutes", type=float, help=f"Time for shadow models; default: {MINUTES:g}.")
@workers_option("share the attacks on a table and their controls")
@output_options
@takes_query
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
    repeats: int,
    no_training: bool,
    background: str,
    dataset: str | None,
    deep: bool,
    plugins: tuple[str, ...],
    no_plugins: bool,
    budget_minutes: float | None,
    workers: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Attack a release before somebody else does.

    The result also says what the attacks could have detected. With only a RUN, dpsynth audits its
    training: it plants canaries among rows drawn from the run. No real row is read, and the result
    becomes part of a bundle. With DATA, --synthetic and --holdout, it also attacks the table:
    memorisation, membership, attributes, linkage, singling out, and attacks of other installed
    packages. Use SCHEMA for tables from other tools. Findings about tables are INTERNAL. Every
    audit runs controls. The exit code is 3 if an attack succeeded, if no attack
    could have seen a leak here, or if the audit is broken.

    If RUN or SCHEMA is of linked tables, --synthetic is a folder, canaries are patients with whole
    histories, and each patient is attacked by her whole history.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.assessment import Trained, check_canaries
        from dpsynth.assessment import audit as attack
        from dpsynth.schema import Schema

        if data is not None and train is not None:
            raise click.UsageError("DATA and --train mean the same; give only one")
        source = data or train
        if budget_minutes is not None and not deep:
            raise click.UsageError("--budget-minutes needs --deep")
        if force and output is None:
            raise click.UsageError("--force needs -o: it replaces an earlier audit in that folder")
        loaded, of = run_or_schema(subject, "audit")
        if not isinstance(loaded, Schema):
            refused = {"--deep": deep, "--dataset": dataset}
            refused["--background real"] = background == "real"
            why = "shadow models, and canaries among real histories, are not built"
            refuse_options(refused, f"is for a single table: {why}")
        _check(of, source, synthetic, holdout, background, dataset, deep, no_training)
        trained, paid = None, None
        if of is not None and not no_training and background == "run":
            trained = Trained(Path(subject), canaries, repeats)
        public = subject if trained is not None else None
        schema, run = loaded, of
        added = plugins_for(
            plugins, no_plugins, source is not None and synthetic is not None, console
        )
        real = _real(subject, schema, run, source, synthetic, holdout)
        shadows = None
        if deep:
            folder = Path(f"{Path(output)}.shadows") if output else None
            minutes = MINUTES if budget_minutes is None else budget_minutes
            assert isinstance(schema, Schema)
            shadows = _shadows(schema, run, folder, minutes, seed, console)
        if background == "real":
            assert run is not None and source is not None and dataset is not None
            check_canaries(canaries)
            if output is None:
                raise click.UsageError(
                    "--background real uses privacy budget; give a folder for its result (-o)"
                )
            claims = run.certificate or {}
            console.advice(
                f"The audit on real rows is a separate fit: epsilon {claims.get('epsilon')} and "
                f"delta {claims.get('delta')} are charged to {dataset}."
            )
            paid = _on_real(run, source, dataset, canaries, seed)
        document = attack(
            schema,
            real=real,
            trained=trained,
            paid=paid,
            deep=shadows,
            plugins=added,
            seed=seed,
            workers=workers,
            output=output,
            overwrite=force,
            progress=console.progress,
        )
        internal = real is not None or background == "real"
        show(console, document, output, public, internal=internal)


def _check(
    run: object,
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
    tables = {"DATA": source, "--synthetic": synthetic, "--holdout": holdout}
    missing = [name for name, value in tables.items() if value is None]
    if background == "real":
        if run is None or source is None or dataset is None or no_training:
            raise click.UsageError(
                "--background real repeats the fit with canaries planted in DATA; give a RUN, "
                "DATA and --dataset, and leave out --no-training"
            )
        if missing == ["--synthetic", "--holdout"]:
            missing = []
    elif dataset is not None:
        raise click.UsageError("--dataset needs --background real; nothing else is charged")
    if 0 < len(missing) < 3:
        raise click.UsageError(f"to attack a table, also give {', '.join(missing)}")
    if run is None and missing:
        raise click.UsageError("for a SCHEMA, give --synthetic, --train and --holdout")
    if missing and (deep or no_training):
        raise click.UsageError("to attack a table, give DATA, --synthetic and --holdout")


def _real(
    subject: str,
    schema: AnySchema,
    run: Run | None,
    source: str | None,
    synthetic: str | None,
    holdout: str | None,
) -> Real | None:
    """Return the tables of an attack; those of a run are known to it, and share no people."""
    from dpsynth.assessment import Candidate, Real, check_people
    from dpsynth.schema import Schema

    if source is None or synthetic is None or holdout is None:
        return None
    if run is None:
        candidate = Candidate.of(schema, synthetic)
    else:
        candidate = Candidate.of_run(subject, synthetic)
        if isinstance(schema, Schema):
            check_people(schema, source, holdout)
    return Real(source, candidate, holdout)


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
        raise click.UsageError("--deep trains the run's generator again; give a RUN and -o")

    def deep(tables: Any, progress: Any) -> Attack:
        from dpsynth.assessment import shadows

        claims = run.certificate or {}
        return shadows(
            schema,
            run.generator,
            float(claims.get("epsilon", 0.0)),
            float(claims.get("delta", 0.0)),
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


def plugins_for(names: tuple[str, ...], none: bool, tables: bool, console: Console) -> list[Plugin]:
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


def lines_of(document: dict[str, Any]) -> list[str]:
    """Lay out each finding above its power, and the controls that did not do what they must."""
    powers = {power["key"]: power["sentence"] for power in document["powers"]}
    sights_of = {sight.key: sight for sight in sights(document)}
    lines = [f"verdict     {VERDICTS[verdict_of(document)]}"]
    for one in document.get("plugins") or []:
        lines.append(f"plug-in     {one['key']}: {one['title']}, {one['package']} {one['version']}")
    lines.append("")
    for one in document["findings"]:
        word = "FOUND" if one["found"] else "not found"
        lines += [f"{word:<12}{one['key']}", *_wrapped(f"result: {one['sentence']}")]
        if one["key"] in powers:
            lines += _wrapped(f"power: {powers[one['key']]}")
        if sights_of[one["key"]].blind:
            lines += _wrapped(f"could not have seen a leak here: {sights_of[one['key']].reason}")
            lines += _wrapped(f"what to change: {sights_of[one['key']].remedy}")
    failed = failed_controls(document)
    passed = len(document["controls"]) - len(failed)
    lines += ["", f"controls    {passed} of {len(document['controls'])} worked as required"]
    for one in document.get("broken") or []:
        lines.append(f"BROKEN      {one['attack']} ({one['where']}): ended with {one['error']}")
    for one in failed:
        word = "FAILED" if one.get("kind") == "negative" else "NOT SEEN"
        lines += [f"{word:<12}{one['title']} ({one['attack']})", *_wrapped(one["sentence"])]
    return lines


def values_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` prints of an audit."""
    names = "verdict tables plugins run seed measures findings powers sights controls broken"
    return {name: document[name] for name in names.split() if name in document}


def end(document: dict[str, Any]) -> None:
    """End with exit code 3 unless all is quiet.

    Raises:
        GateError: an attack succeeded, none could have seen a leak, or the audit is broken.
    """
    if verdict_of(document) == "failed":
        rash = [f"“{item['title']}”" for item in false_alarms(document)]
        why = [f"{one['attack']} ended with an error" for one in document.get("broken") or []]
        why += [f"{one} claimed a leak where there is none" for one in rash]
        raise GateError(f"the audit is broken: {', '.join(why) or 'no control was played'}")
    if verdict_of(document) == "found":
        successes = [item["key"] for item in document["findings"] if item["found"]]
        raise GateError(f"{counted(len(successes), 'attack')} succeeded: {', '.join(successes)}")
    if all_blind(document):
        raise GateError(
            "no attack could have seen a leak here, so their silence says nothing; see above what "
            "to change"
        )


def _wrapped(text: str) -> list[str]:
    space = " " * 12
    return wrap(text, 100, initial_indent=space, subsequent_indent=space)


VERDICTS = {
    "quiet": "no attack succeeded; see below what the attacks could have detected",
    "found": "an attack SUCCEEDED",
    "failed": "this audit FAILED and proves nothing: it is broken, see its controls",
}


def show(
    console: Console,
    document: dict[str, Any],
    output: str | None,
    public: str | None,
    *,
    internal: bool,
) -> None:
    """Show what was found, and end with the exit code that it means."""
    from dpsynth.assessment.results_folder import PAGE

    lines = lines_of(document)
    if output is not None:
        lines += ["", f"page        {Path(output) / PAGE}"]
    if public is not None:
        lines.append(f"public      {Path(public) / 'audit.json'}: the training's audit")
    console.result("audit", {"internal": True, "output": output} | values_of(document), lines)
    for note in document["notes"]:
        console.advice(f"Note: {note}")
    if internal:
        console.advice("Internal: computed from real rows. Do not release.")
        if output is None:
            console.advice(
                "Findings were not saved. Use -o FOLDER to save the findings and their page."
            )
    end(document)
