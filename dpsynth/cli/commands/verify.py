"""``dpsynth verify``: the check of a bundle, with nothing but the bundle unless more is named."""

from __future__ import annotations

from pathlib import Path

import click

from dpsynth._util.output import write_text
from dpsynth.cli.console import Console, output_options


def _show_schema(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Print the JSON Schema of the certificate, and stop."""
    if value:
        from dpsynth.certificate import json_schema

        write_text(json_schema())
        context.exit()


@click.command(epilog="Example:  dpsynth verify bundle/ --key office.key.pub")
@click.argument("bundle", type=click.Path())
@click.option(
    "--key", type=click.Path(), help="Public key of the publisher; also checks the signature."
)
@click.option("--ledger", is_flag=True, help="Also compare the bundle with your ledger.")
@click.option(
    "--other-version",
    is_flag=True,
    help="Accept a bundle from another version; page, card and documents are NOT compared.",
)
@click.option(
    "--show-schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_schema,
    help="Print the JSON Schema of privacy.json (the certificate) and exit.",
)
@output_options
def verify(
    bundle: str,
    key: str | None,
    ledger: bool,
    other_version: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check the files, cells and certificate of BUNDLE.

    Every hash is checked, every cell is compared with the schema, and epsilon is computed again
    from the certificate. With --key, also check the signature. With --ledger (in the office), also
    compare the bundle with the ledger that DPSYNTH_LEDGER names. All problems are listed; if there
    are any, the exit code is 5. Folders of dpsynth stats, labels, linkage and local estimate are
    checked likewise.
    """
    from dpsynth.bundle import verify as check

    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        book = None
        if ledger:
            from dpsynth.ledger import Ledger

            book = Ledger.present()
        from dpsynth.stats import is_answers, verify_answers

        if is_answers(bundle):
            checks = verify_answers(bundle, key=key, ledger=book)
        else:
            checks = check(Path(bundle), key=key, ledger=book, other_version=other_version)
        lines = [*[f"ok  {line}" for line in checks], f"{bundle} verified"]
        values = {"bundle": bundle, "verified": True, "signed": key is not None, "checks": checks}
        console.result("verify", values, lines)
