"""``dpsynth release``: a bundle of a run, and what is written from a bundle for others to use."""

from __future__ import annotations

from pathlib import Path

import click

from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import refuse_options


@click.command(epilog="Example:  dpsynth release run/ -o bundle/")
@click.argument("subject", metavar="RUN|BUNDLE", type=click.Path())
@click.option("--output", "-o", type=click.Path(), help="New folder for the bundle of RUN.")
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
@click.option(
    "--dpia",
    type=click.Path(),
    metavar="FILE",
    help="Also write a draft for a data protection impact assessment into this new text file.",
)
@output_options
def release(
    subject: str,
    output: str | None,
    table: str | None,
    rows: int | None,
    patients: int | None,
    seed: int | None,
    about: str | None,
    override: str | None,
    by: str | None,
    meds: str | None,
    dpia: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a bundle from RUN for release.

    A bundle has the data, schema, privacy certificate, and a page and a card for readers. Public
    gates decide whether the release goes ahead. The exit code is 3 if one stops it. A bundle
    contains nothing computed from real rows except what the plan paid for. A run of linked tables
    gives a bundle with a file for each table, whose keys agree. What dpsynth stats, labels and
    linkage wrote is released as it is, if its ledger allows it.

    With a BUNDLE that is written already, --meds and --dpia verify it and write from it alone.
    With a RUN and no -o, --dpia writes its draft before the release. Both use no privacy budget.
    """
    from dpsynth.bundle.format.layout import MANIFEST
    from dpsynth.stats import is_answers, release_answers

    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        if (override is None) != (by is None):
            raise click.UsageError("give both --override REASON and --by NAME, or neither")
        drawing = any(option is not None for option in (table, rows, patients, seed, about, by))
        if is_answers(subject):
            if drawing or meds is not None or dpia is not None:
                raise click.UsageError("statistics are released as they are; leave out the options")
            if output is None:
                raise click.UsageError("give -o, the new folder for the bundle")
            console.progress("bundle", 0.0)
            released = release_answers(subject, output)
            names = sorted(path.name for path in released.iterdir())
            lines = [f"bundle      {output}", *[f"            {name}" for name in names]]
            console.result("release", {"bundle": output, "files": names}, lines)
            return
        if (Path(subject) / MANIFEST).is_file():
            if drawing or output is not None or (meds is None and dpia is None):
                raise click.UsageError(
                    f"{subject} is a bundle already: give --meds FOLDER, --dpia FILE or both, and "
                    "no other option; or name a run"
                )
            _write_from(Path(subject), meds, dpia, console, {"bundle": subject})
            return
        if output is None:
            if drawing or meds is not None or dpia is None:
                raise click.UsageError("give -o, the new folder for the bundle")
            _write_from(Path(subject), None, dpia, console, {})
            return
        from dpsynth.bundle import release as write_bundle
        from dpsynth.bundle import tables_without_time
        from dpsynth.bundle.format import About
        from dpsynth.certificate import Override

        console.progress("bundle", 0.0)
        bundle = write_bundle(
            Path(subject),
            Path(output),
            table=Path(table) if table else None,
            size=size_of(subject, rows, patients),
            seed=seed,
            about=None if about is None else About.load(about),
            override=None if override is None or by is None else Override(override, by),
            meds=meds,
            dpia=dpia,
        )
        files = sorted(str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file())
        lines = [f"bundle      {output}", *[f"            {name}" for name in files]]
        values: dict[str, object] = {"bundle": output, "files": files}
        if meds is not None:
            left_out = tables_without_time(bundle)
            values |= {"meds": meds, "left_out": list(left_out)}
            lines += [f"events      {meds}", *_left_out(left_out)]
        if dpia is not None:
            values["dpia"] = dpia
            lines.append(f"assessment  {dpia}")
        console.result("release", values, lines)
        console.advice(f"Check it anywhere, without torch: dpsynth verify {output}")
        console.advice(f"Sign it with the office's key: dpsynth sign {output} --key office.key")


def size_of(run: str, rows: int | None, patients: int | None) -> int | None:
    """Return how much is drawn of a run: rows of one table, or patients of linked ones.

    Raises:
        UsageError: it is given by the option of the other.
    """
    if rows is None and patients is None:
        return None
    from dpsynth.schema import Schema
    from dpsynth.synthesis import Run

    loaded: Run = Run.load(run)
    if isinstance(loaded.schema, Schema):
        refuse_options({"--patients": patients}, "is for a run of linked tables; give --rows")
        return rows
    refuse_options({"--rows": rows}, "is for a run of one table; give --patients")
    return patients


def _write_from(
    folder: Path, meds: str | None, dpia: str | None, console: Console, values: dict[str, object]
) -> None:
    """Write the events of a bundle, and the draft of a bundle or a run; show what was written."""
    from dpsynth.bundle import export_meds, write_dpia
    from dpsynth.files import check_vacant

    for path in (meds, dpia):
        if path is not None:
            check_vacant(path)
    lines = []
    if meds is not None:
        done = export_meds(folder, meds)
        values |= {"meds": meds, "patients": done.patients, "events": done.events}
        values["left_out"] = list(done.left_out)
        lines.append(f"events      {meds}: {done.events} events of {done.patients} patients")
        lines += _left_out(done.left_out)
    if dpia is not None:
        write_dpia(folder, dpia)
        values["dpia"] = dpia
        lines.append(f"assessment  {dpia}")
    console.result("release", values, lines)


def _left_out(tables: tuple[str, ...]) -> list[str]:
    return [f"left out    {', '.join(tables)}: their rows have no time"] if tables else []
