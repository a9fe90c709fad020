"""``dpsynth evaluate`` and ``dpsynth compare``: synthetic tables against real ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import counted
from dpsynth._util.messages import listed
from dpsynth._util.output import write_text
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.options import refuse_options, takes_query, workers_option
from dpsynth.cli.subjects import run_or_schema
from dpsynth.errors import GateError, InputError

if TYPE_CHECKING:
    from dpsynth.assessment import Candidate
    from dpsynth.schema import AnySchema

# Threads of the classifiers that wait by spinning would stand still on a machine with other work;
# the setting is read when a library with OpenMP is loaded, so it comes before that.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

FACTS = (*("never", "never_rows", "edits", "seldom", "strongest", "levels", "patterns_unseen"),)
FACT_KINDS = ("effects:", "signs:")
FACTS_OF_HISTORIES = (
    *("values", "panels", "links", "calendar", "prevalence", "effects", "event_curves"),
    "coefficients",
)
HEADLINES = (
    *FACTS,
    *("tvd1", "tvd2", "tvd3", "correlation", "missing", "queries", "c2st", "rules"),
    *("group_means", "survival", "cox", "subgroup_worst_tvd2"),
)
HEADLINE_KINDS = (*FACT_KINDS, "tstr:", "odds:")
FORMS = ("auto", "source", "iso")  # those of dpsynth.encoding.any_table


written_option = click.option(
    "--written",
    type=click.Choice(FORMS),
    default="auto",
    show_default=True,
    help="How a table of another tool is written: as the source (separator, decimal sign, dates, "
    "words and codes that SCHEMA declares), as dpsynth writes tables (iso), or either (auto).",
)


def _show_gates(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Print the gates that ship, and stop."""
    if value:
        from dpsynth.eval import shipped

        write_text(shipped())
        context.exit()


@click.command(
    epilog="Example:  dpsynth evaluate run/ train.csv --synthetic out.parquet "
    "--holdout holdout.csv -o internal/"
)
@click.argument("subject", metavar="RUN|SCHEMA")
@click.argument("data", type=click.Path())
@click.option(
    "--synthetic",
    required=True,
    type=click.Path(),
    help="The table to evaluate: the one that you will release.",
)
@click.option("--holdout", type=click.Path(), help="Real rows of people who are not in DATA.")
@click.option("--output", "-o", type=click.Path(), help="Folder for the figures and the page.")
@click.option("--force", is_flag=True, help="Replace an earlier evaluation in that folder.")
@click.option(
    "--gates", "limits", type=click.Path(), help="YAML file with your own internal gates."
)
@click.option(
    "--show-gates",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_gates,
    help="Print the gates that ship with dpsynth, as a starting point, and exit.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Seed for subsamples and splits. The same seed gives the same figures.",
)
@click.option(
    "--publish",
    is_flag=True,
    help="Also spend the budget that the fit set aside with --publish-quality on public figures. "
    "This works once.",
)
@written_option
@workers_option("share the evaluation")
@output_options
@takes_query
def evaluate(
    subject: str,
    data: str,
    synthetic: str,
    holdout: str | None,
    output: str | None,
    force: bool,
    limits: str | None,
    seed: int,
    publish: bool,
    written: str,
    workers: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare a synthetic table with the real DATA.

    DATA is the table that the generator learned from. RUN is the folder of a run, and the table
    must be drawn from it. For tables from other tools, give SCHEMA instead: a path or the name of a
    schema that ships with dpsynth. Such a table may be written as the source is, with its
    separator, decimal sign, dates, words and codes, or as dpsynth writes tables: comma, point, ISO
    dates, true and false. It may leave out columns that follow from others. Where a column can be
    read in both ways, a note names it, and --written decides. All results are INTERNAL because they
    are computed from real rows. The exit code is 3 if an internal gate fails.

    If RUN or SCHEMA is of linked tables, --synthetic is a folder, and whole histories are compared.
    The exit code is 3 if they are not fit for a use, or if an internal gate fails.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.assessment import Candidate, check_people, check_place, publish_quality
        from dpsynth.assessment import evaluate as held_against
        from dpsynth.assessment.results_folder import EVALUATION, HISTORIES
        from dpsynth.eval.gates import gates
        from dpsynth.schema import Schema

        schema, run = run_or_schema(subject, "evaluate")
        is_single = isinstance(schema, Schema)
        if not is_single:
            refuse_options({"--publish": publish}, "is for a single table")
            refuse_options(
                {"--workers": workers}, "is for a single table: one process compares histories"
            )
        if publish and run is None:
            raise click.UsageError("--publish needs a run whose fit set aside budget for it")
        if run is None:
            candidate = Candidate.of(schema, synthetic, written)
        else:
            candidate = Candidate.of_run(subject, synthetic)
        chosen = gates(limits)
        check_place(output, force, EVALUATION if is_single else HISTORIES)
        published = None
        if publish:  # before anything else is known of the table
            assert isinstance(schema, Schema)
            check_people(schema, data, holdout)
            progress = console.progress
            published = publish_quality(subject, synthetic, holdout or data, progress=progress)
        document = held_against(
            schema,
            data,
            candidate,
            holdout,
            limits=chosen,
            seed=seed,
            workers=workers,
            output=output,
            overwrite=force,
            progress=console.progress,
        )
        lines = _lines(document) if is_single else _lines_of_histories(document)
        if output is not None:
            lines += ["", f"page        {Path(output) / _page(document)}"]
        if published is not None:
            lines.append(f"published   {Path(subject) / 'quality.json'}")
        found = ("tables",) if is_single else ("patients", "uses")
        named = ("internal", "run", "seed", "measures", "notes", *found, "gates")
        console.result(
            "evaluate", {name: document[name] for name in named} | {"output": output}, lines
        )
        for note in document["notes"]:
            if not is_single or note.startswith(("the synthetic table", "only ")):
                console.advice(f"Note: {note}")
        _end(console, document)


def _end(console: Console, document: dict[str, Any]) -> None:
    """End with exit code 3 unless the tables are good enough.

    Raises:
        GateError: a gate failed, or the histories are not fit for a use.
    """
    from dpsynth.assessment import failed_gates, unfit_uses

    unjudged = [gate["key"] for gate in document["gates"] if gate["passed"] is None]
    if unjudged:
        console.advice(f"Not measured, so not judged: {', '.join(unjudged)}")
    console.advice("Internal: computed from real rows. Do not release.")
    failed = failed_gates(document)
    gates = f"{counted(len(failed), 'internal gate')} failed: {', '.join(failed)}"
    if unfit := unfit_uses(document) if "uses" in document else ():
        uses = f"{counted(len(unfit), 'use')}: {listed(unfit)}"
        raise GateError(f"the cohort is not fit for {uses}" + (f"; {gates}" if failed else ""))
    if failed:
        raise GateError(gates)


def _page(document: dict[str, Any]) -> str:
    from dpsynth.assessment.results_folder import HISTORIES_PAGE, PAGE

    return HISTORIES_PAGE if "uses" in document else PAGE


def _lines_of_histories(document: dict[str, Any]) -> list[str]:
    """Say what synthetic histories are fit for, the facts and verdicts, and what differs most."""
    from dpsynth.eval.report import helps, largest_differences

    uses = [f"{use['verdict']:<13} {use['title']}: {use['sentence']}" for use in document["uses"]]
    facts = [key for key in document["measures"] if _is_fact(key)]
    differ = [f"differs       {text}" for text in largest_differences(document)]
    help = [f"may help      {text}" for text in helps(document)]
    return [*uses, "", *_figures(document, facts), *differ, *help, "", *_verdicts(document)]


@click.command(
    epilog="Example:  dpsynth compare cardio train.csv network=a.csv ctgan=b.csv "
    "--holdout holdout.csv -o comparison/"
)
@click.argument("schema")
@click.argument("data", type=click.Path())
@click.argument("candidates", nargs=-1, required=True, metavar="[NAME=]TABLE|RUN...")
@click.option("--holdout", type=click.Path(), help="Real rows of people who are not in DATA.")
@click.option("--output", "-o", type=click.Path(), help="Folder for the figures and the page.")
@click.option("--force", is_flag=True, help="Replace an earlier comparison in that folder.")
@click.option("--seed", default=0, show_default=True, help="Seed for subsamples, splits and draws.")
@written_option
@workers_option("share each evaluation")
@output_options
@takes_query
def compare(
    schema: str,
    data: str,
    candidates: tuple[str, ...],
    holdout: str | None,
    output: str | None,
    force: bool,
    seed: int,
    written: str,
    workers: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare several synthetic tables in one report.

    All candidates get the same tasks and splits. A candidate is a table from any tool, or a run,
    from which the schema's number of rows is drawn. If SCHEMA is of linked tables, DATA, --holdout
    and candidates that are not runs are folders, and whole histories are compared. Tables of other
    tools are written as the source is, or as dpsynth writes tables; see --written. The result is
    INTERNAL because it is computed from real rows.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.assessment import compare as side_by_side
        from dpsynth.assessment.results_folder import COMPARISON_PAGE
        from dpsynth.schema import Schema, load_any

        loaded = load_any(schema)
        is_single = isinstance(loaded, Schema)
        if not is_single:
            refuse_options(
                {"--workers": workers}, "is for a single table: one process compares histories"
            )
        chosen = [_candidate(text, loaded, seed, written) for text in candidates]
        documents = side_by_side(
            loaded,
            data,
            chosen,
            holdout,
            seed=seed,
            workers=workers,
            output=output,
            overwrite=force,
            progress=console.progress,
        )
        names = [candidate.name for candidate in chosen]
        keys = [
            key
            for key in documents[0]["measures"]
            if (_is_headline(key) if is_single else ":" not in key)
        ]
        keys.sort(key=lambda key: not _is_fact(key))
        every = [document["measures"] for document in documents]
        rows = [
            [
                key,
                *[_number(measures.get(key, {}).get("value")) for measures in every],
                *[_number(_common(every, key, name)) for name in ("reference", "chance")],
            ]
            for key in keys
        ]
        lines = table(("measure", *names, "holdout", "by chance"), rows)
        lines += ["", *_relations(documents, names), *_differences(documents, names)]
        if output is not None:
            lines.append(f"page        {Path(output) / COMPARISON_PAGE}")
        measures = dict(zip(names, every, strict=True))
        values = {"internal": True, "seed": seed, "measures": measures, "output": output}
        console.result("compare", values, lines)
        console.advice("Internal: computed from real rows. Do not release.")


def _candidate(text: str, schema: AnySchema, seed: int, written: str) -> Candidate:
    """Read ``NAME=TABLE``; a run is drawn from."""
    from dpsynth.assessment import Candidate
    from dpsynth.schema import Schema
    from dpsynth.synthesis import Run
    from dpsynth.synthesis.run import DOCUMENT

    name, sign, place = text.partition("=")
    if not sign or Path(text).exists():
        name, place = Path(text).name or text, text
    path = Path(place)
    if not (path / DOCUMENT).exists():
        if isinstance(schema, Schema) and not path.is_file():
            raise InputError(f"{place}: no such table or run")
        return replace(Candidate.of(schema, path, written), name=name)
    run: Run = Run.load(path)
    if run.schema.hash() != schema.hash():
        raise InputError(
            f"{place} was fitted with another schema than {schema.name}; give a run of this schema"
        )
    return Candidate.drawn(name, run, seed)


def _lines(document: dict[str, Any]) -> list[str]:
    """Lay out the headline figures, each with its references, and the verdicts."""
    keys = sorted(filter(_is_headline, document["measures"]), key=lambda key: not _is_fact(key))
    return [
        *_figures(document, keys),
        *_relations([document], ["synthetic"]),
        *_never_real(document),
        *_verdicts(document),
    ]


def _figures(document: dict[str, Any], keys: Sequence[str]) -> list[str]:
    """Lay out some figures, each with its references."""
    rows = [
        (
            key,
            _number(one["value"]),
            "" if one["low"] is None else f"{_number(one['low'])} to {_number(one['high'])}",
            _number(one["reference"]),
            _number(one["chance"]),
            one["title"],
        )
        for key in keys
        for one in [document["measures"][key]]
    ]
    return [*table(("measure", "value", "95 % interval", "holdout", "by chance", ""), rows), ""]


def _verdicts(document: dict[str, Any]) -> list[str]:
    """Lay out what the internal gates say."""
    words = {True: "ok", False: "FAILED", None: "not measured"}
    verdicts = [
        (words[gate["passed"]], gate["key"], _number(gate["value"]), gate["limit"])
        for gate in document["gates"]
    ]
    return table(("gate", "", "value", "limit"), verdicts)


def _relations(documents: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Lay out the strongest relations by name, with their strength in each table."""
    from dpsynth.eval.report.key_figures import relations

    listed = [relations(document) for document in documents]
    if not listed[0]:
        return []
    rows = [
        (
            one.title,
            _number(one.source),
            *(_number(relations[place].synthetic) for relations in listed),
            _number(one.holdout),
        )
        for place, one in enumerate(listed[0])
    ]
    head = ("strongest relations (V)", "real", *names, "holdout")
    return [*table(head, rows), ""]


def _differences(documents: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Name the largest differences of each cohort."""
    from dpsynth.eval.report import largest_differences

    return [
        f"differs     {name}: {text}"
        for name, document in zip(names, documents, strict=True)
        for text in largest_differences(document)
    ]


def _never_real(document: dict[str, Any]) -> list[str]:
    """Name pairs of values that synthetic rows have and no real row has."""
    from dpsynth.eval.report.key_figures import never_seen

    names = never_seen(document)
    return [*(f"never real  {name}" for name in names), *[""] * bool(names)]


def _common(every: list[dict[str, Any]], key: str, name: str) -> float | None:
    """Return a reference that all candidates share; a group of one's own has its own."""
    values = {measures[key][name] for measures in every if key in measures}
    return values.pop() if len(values) == 1 else None


def _is_fact(key: str) -> bool:
    """Whether it is among the facts that a reader checks first, which stand first."""
    return key in FACTS or key in FACTS_OF_HISTORIES or key.startswith(FACT_KINDS)


def _is_headline(key: str) -> bool:
    return key in HEADLINES or key.startswith(HEADLINE_KINDS)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
