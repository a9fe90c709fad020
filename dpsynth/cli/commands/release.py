"""``dpsynth release``, ``export-meds`` and ``dpia``: the bundle, its events, and a text."""

from __future__ import annotations

from pathlib import Path

import click

from dpsynth.cli.console import Console, output_options


@click.command(epilog="Example:  dpsynth release run/ -o bundle/")
@click.argument("run", type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(), help="New folder for the bundle.")
@click.option(
    "--table",
    type=click.Path(),
    help="Release this table, drawn earlier from the run; of linked tables, a folder of them.",
)
@click.option("--rows", type=int, help="Rows to draw; default: the schema's public number.")
@click.option(
    "--patients",
    type=int,
    help="Patients to draw from a run of linked tables; default: the schema's public number.",
)
@click.option("--seed", type=int, help="Seed for sampling; default: a new one, which is recorded.")
@click.option(
    "--about",
    type=click.Path(),
    help="YAML file with public facts from the office: publisher, licence, intended use and more.",
)
@click.option(
    "--override",
    metavar="REASON",
    help="Release although a public gate on evidence stops it. Needs --by; the bundle shows both.",
)
@click.option("--by", metavar="NAME", help="Name of the person responsible for --override; public.")
@click.option(
    "--meds",
    type=click.Path(),
    metavar="FOLDER",
    help="Also write the patients of linked tables as events (MEDS 0.4) into this new folder.",
)
@output_options
def release(
    run: str,
    output: str,
    table: str | None,
    rows: int | None,
    patients: int | None,
    seed: int | None,
    about: str | None,
    override: str | None,
    by: str | None,
    meds: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a bundle from RUN for release.

    A bundle has the data, schema, privacy certificate, and a page and a card for readers. Public
    gates decide whether the release goes ahead. The exit code is 3 if one stops it. A bundle
    contains nothing computed from real rows except what the plan paid for. A run of linked tables
    gives a bundle with a file for each table, whose keys agree. What dpsynth stats, labels and
    linkage wrote is released as it is, if its ledger allows it.
    """
    from dpsynth.bundle import release as write_bundle
    from dpsynth.bundle import tables_without_time
    from dpsynth.bundle.format import About
    from dpsynth.certificate import Override
    from dpsynth.stats import is_answers, release_answers

    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        if (override is None) != (by is None):
            raise click.UsageError("give both --override REASON and --by NAME, or neither")
        console.progress("bundle", 0.0)
        if is_answers(run):
            others = (table, rows, patients, seed, about, override, meds)
            if any(option is not None for option in others):
                raise click.UsageError("statistics are released as they are; leave out the options")
            released = release_answers(run, output)
            names = sorted(path.name for path in released.iterdir())
            lines = [f"bundle      {output}", *[f"            {name}" for name in names]]
            console.result("release", {"bundle": output, "files": names}, lines)
            return
        bundle = write_bundle(
            Path(run),
            Path(output),
            table=Path(table) if table else None,
            rows=rows,
            patients=patients,
            seed=seed,
            about=None if about is None else About.load(about),
            override=None if override is None or by is None else Override(override, by),
            meds=meds,
        )
        files = sorted(str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file())
        lines = [f"bundle      {output}", *[f"            {name}" for name in files]]
        values: dict[str, object] = {"bundle": output, "files": files}
        if meds is not None:
            left_out = tables_without_time(bundle)
            values |= {"meds": meds, "left_out": list(left_out)}
            lines.append(f"events      {meds}")
            lines += _left_out(left_out)
        console.result("release", values, lines)
        console.advice(f"Check it anywhere, without torch: dpsynth verify {output}")
        console.advice(f"Sign it with the office's key: dpsynth sign {output} --key office.key")


def _left_out(tables: tuple[str, ...]) -> list[str]:
    return [f"left out    {', '.join(tables)}: their rows have no time"] if tables else []


@click.command("export-meds", epilog="Example:  dpsynth export-meds bundle/ -o events/")
@click.argument("bundle", type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(), help="New folder for the events.")
@output_options
def export_meds(bundle: str, output: str, as_json: bool, quiet: bool) -> None:
    """Write the linked tables of BUNDLE as events, for sequence models.

    The format is the Medical Event Data Standard (MEDS 0.4): a table of events with subject, time,
    code and number, a list of codes, and a split of patients for training. The bundle is verified
    first. Nothing else is read, so this uses no privacy budget.
    """
    from dpsynth.bundle import export_meds as write_events

    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        done = write_events(bundle, output)
        lines = [f"events      {output}: {done.events} events of {done.patients} patients"]
        lines += _left_out(done.left_out)
        values = {"output": output, "patients": done.patients, "events": done.events}
        console.result("export-meds", values | {"left_out": list(done.left_out)}, lines)


@click.command(epilog="Example:  dpsynth dpia run/")
@click.argument("subject", metavar="RUN|BUNDLE", type=click.Path())
@output_options
def dpia(subject: str, as_json: bool, quiet: bool) -> None:
    """Draft text for a data protection impact assessment.

    The text is made from the certificate alone. Brackets mark what only the office knows. No real
    row is read.
    """
    from dpsynth.bundle import dpia_of

    with Console(as_json=as_json, quiet=quiet) as console:
        paragraph = dpia_of(Path(subject))
        lines = [line for part in paragraph for line in ("", part)][1:]
        console.result("dpia", {"subject": subject, "paragraph": list(paragraph)}, lines)
