"""``dpsynth rules``: rules that are offered after a fit, for a person to confirm."""

from __future__ import annotations

from pathlib import Path

import click

from dpsynth.cli.console import Console, output_options


@click.command(epilog="Example:  dpsynth rules run/ -o rules.yaml")
@click.argument("run", type=click.Path())
@click.option(
    "--evaluation",
    type=click.Path(),
    metavar="FILE",
    help="Offer pairs of values that no real row has, too, from this internal evaluation.json. The "
    "guarantee does not cover such rules, and a release needs a policy that allows them.",
)
@click.option("--output", "-o", type=click.Path(), help="File to write, such as rules.yaml.")
@output_options
def rules(run: str, evaluation: str | None, output: str | None, as_json: bool, quiet: bool) -> None:
    """Offer rules for what is drawn from RUN, which a person confirms.

    Rules are offered from public lists of clinical edits and from the fitted generator: pairs of
    categories that it hardly ever draws, and orders of two columns. Each comes with the share of
    drawn rows that break it. This reads no private row and costs no budget.

    Nothing is applied by itself. Write your name into the file behind confirmed_by of each rule
    that holds, add rules of your own, and draw with `dpsynth sample RUN --rules rules.yaml`: the
    run is not fitted again. A release says who confirmed which rule, and on what basis.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth._util.strict_json import read_document
        from dpsynth.files import check_vacant, write_new
        from dpsynth.files.atomic import PRIVATE
        from dpsynth.schema import Schema
        from dpsynth.synthesis import Run, offered_rules, rules_text

        if output is not None:
            check_vacant(output)
        loaded: Run = Run.load(run)
        document = None if evaluation is None else read_document(Path(evaluation))
        offered = offered_rules(loaded, evaluation=document)
        noun = "row" if isinstance(loaded.schema, Schema) else "patient"
        text = rules_text(offered, run, noun)
        values: dict[str, object] = {"rules": [one.to_dict() for one in offered]}
        internal = document is not None or loaded.certificate is None  # it tells of real rows
        if internal:
            values["internal"] = True
            console.advice("INTERNAL: these rules tell of real rows; do not release them")
        if output is not None:
            write_new(output, text.encode(), mode=PRIVATE if internal else 0o666)
            values["output"] = output
            lines = [f"wrote {output}"]
        else:
            lines = text.splitlines()
        console.result("rules", values, lines)
        number = len(offered)
        console.advice(
            f"{number} rule{'' if number == 1 else 's'} offered; write your name behind "
            "confirmed_by of those that hold, then: dpsynth sample RUN --rules FILE -o OUTPUT"
        )
