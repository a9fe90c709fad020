"""``dpsynth release`` and ``dpsynth verify``: the bundle, and its check."""

from __future__ import annotations

from pathlib import Path

import click

from dpsynth.cli.console import Console, output_options


@click.command(epilog="Example:  dpsynth release run/ -o bundle/")
@click.argument("run", type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(), help="Folder of the bundle; new.")
@click.option("--table", type=click.Path(), help="Release this table, drawn earlier from the run.")
@click.option("--rows", type=int, help="Rows to draw; default: the schema's public number.")
@click.option("--seed", type=int, help="Seed of the sampling; default: a fresh one, recorded.")
@output_options
def release(
    run: str,
    output: str,
    table: str | None,
    rows: int | None,
    seed: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a bundle from RUN: data, schema, privacy certificate, a page for its readers."""
    from dpsynth.release import release as write_bundle

    with Console(as_json=as_json, quiet=quiet) as console:
        console.progress("bundle", 0.0)
        bundle = write_bundle(
            Path(run), Path(output), table=Path(table) if table else None, rows=rows, seed=seed
        )
        files = sorted(str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file())
        lines = [f"bundle      {output}", *[f"            {name}" for name in files]]
        console.result("release", {"bundle": output, "files": files}, lines)
        console.advice(f"Check it anywhere, without torch: dpsynth verify {output}")


@click.command(epilog="Example:  dpsynth verify bundle/")
@click.argument("bundle", type=click.Path())
@output_options
def verify(bundle: str, as_json: bool, quiet: bool) -> None:
    """Check BUNDLE: every hash, every cell against the schema, the certificate re-accounted.

    Exit code 5 if anything differs; every finding is named.
    """
    from dpsynth.verify import verify as check

    with Console(as_json=as_json, quiet=quiet) as console:
        checks = check(Path(bundle))
        lines = [*[f"ok  {line}" for line in checks], f"{bundle} verified"]
        console.result("verify", {"bundle": bundle, "verified": True, "checks": checks}, lines)
