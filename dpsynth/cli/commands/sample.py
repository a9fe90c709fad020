"""``dpsynth sample``: synthetic rows from a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import refuse_options

if TYPE_CHECKING:
    from dpsynth.certificate import AddedRule
    from dpsynth.synthesis import Run


ON_REQUEST = "on-request"  # of rows whose shares, or some of whose cells, the user has set


@click.command(epilog="Example:  dpsynth sample run/ --rows 100000 --seed 7 -o synthetic.parquet")
@click.argument("run", type=click.Path())
@click.option("--rows", type=int, help="Rows to draw; default: the schema's public number.")
@click.option(
    "--patients",
    type=int,
    help="Patients to draw from a run of linked tables; default: the schema's public number.",
)
@click.option("--seed", type=int, help="Seed for sampling; default: a new one, which is recorded.")
@click.option(
    "--where",
    metavar="CONDITION",
    help="Draw only rows, or patients, that meet a condition, such as \"sex == 'F'\", "
    "\"age >= 65 and ward in ('ICU', 'surgery')\" or \"grade not in (1, 2)\". Text is in quotes.",
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
    help="Table to write (.parquet, .csv or .csv.gz); of a run of linked tables, a new folder.",
)
@click.option(
    "--format",
    "suffix",
    type=click.Choice(["csv", "csv.gz", "parquet"]),
    help="Kind of the files of linked tables; default: csv.",
)
@click.option("--plain", is_flag=True, help="Draw independent rows, for analyses that need them.")
@click.option(
    "--replicates",
    type=int,
    metavar="M",
    help="Write M tables, OUTPUT-1 to OUTPUT-M, each from a refit of the run, for standard errors; "
    "of a run of linked tables, M folders.",
)
@click.option(
    "--balance", metavar="COLUMN", help="Draw the categories of a column in equal numbers."
)
@click.option(
    "--like",
    metavar="FILE",
    help="Complete the rows of a CSV file: cells that it gives stay, empty ones are drawn.",
)
@click.option(
    "--rules",
    type=click.Path(),
    metavar="FILE",
    help="Keep all rows to the confirmed rules of this file, as `dpsynth rules` writes it.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of processes that draw a large table in parallel. The table is the same with any "
    "number.  [default: 1 for each core]",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace the output if it exists and this run's records, or the metadata of a Parquet "
    "file, say that dpsynth drew it.",
)
@output_options
def sample(
    run: str,
    rows: int | None,
    patients: int | None,
    seed: int | None,
    where: str | None,
    plain: bool,
    output: str,
    suffix: str | None,
    replicates: int | None,
    balance: str | None,
    like: str | None,
    rules: str | None,
    workers: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw synthetic rows from RUN. No other data is read.

    The same run, seed and number of rows give the same table. The run records the table's hash, so
    you can release the table later. Rows are drawn with stratified sampling, so they vary less than
    independent draws and the table stays close to what was learned. Use --plain for independent
    draws.

    A --where condition is written like a rule of the schema: comparisons (< <= > >= == !=) and
    lists (in, not in), joined by and, or, not and implies. Rows are drawn under the condition,
    however rare it is, and the line "condition" says how many patients are expected behind it: of
    few, the model knows little. A network chooses rows among proposals; the line "proposals" warns
    if they are few. This costs no privacy budget. A missing value never meets a condition.

    Rows that break a rule of the schema are drawn again; the line "rules" says how many met the
    rules. --rules adds rules that somebody confirmed after the fit (dpsynth rules). Orders, derived
    columns and conditions of columns hold in every drawn row.

    Rows of --balance and --like can be used, but not released: the run does not record them.

    With --replicates, the plan of the run is repeated on tables drawn from the run, and each
    replicate is drawn from one such refit. A refit takes as long as the fit but uses no privacy
    budget. Replicates show how uncertain estimates are. They cannot be released.

    A run of linked tables gives --patients patients with all their rows: OUTPUT is a folder with a
    file for each table, and their keys agree. --where and --balance are about the columns of the
    table of patients. With --plain, patients are independent draws.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.files import check_no_bundle
        from dpsynth.schema import Schema
        from dpsynth.synthesis import Run, default_size

        check_no_bundle(output)
        loaded: Run = Run.load(run)
        of_rows = isinstance(loaded.schema, Schema)
        if of_rows:
            refused = {"--patients": patients, "--format": suffix}
            refuse_options(refused, "is for a run of linked tables")
        else:
            refuse_options({"--rows": rows}, "is for a run of one table; give --patients")
            refuse_options(
                {"--like": like},
                "completes rows of one table; the histories of linked tables begin with their "
                "patients, and no cell of theirs can be given",
            )
        asked = rows if of_rows else patients
        if like is not None:
            refuse_options(
                {"--rows": asked, "--where": where, "--balance": balance, "--plain": plain}
                | {"--workers": workers, "--replicates": replicates, "--rules": rules},
                "does not go with --like, which completes the rows of its file",
            )
        if replicates is not None:
            refused = {"--balance": balance, "--workers": workers, "--rules": rules}
            refuse_options(refused, "does not go with --replicates")
        law = {"where": where, "plain": plain, "balance": balance}
        size = default_size(loaded) if asked is None else asked
        added = () if rules is None else confirmed_rules(console, rules, loaded)
        loaded = loaded.kept_to(added, str(rules))
        drawing = Drawing(run, loaded, output, size, seed, f".{suffix or 'csv'}", force, added)
        if replicates is not None:
            drawing.replicates(console, replicates, where)
        elif like is not None:
            drawing.completed(console, like)
        else:
            drawing.drawn(console, law, workers)


def confirmed_rules(console: Console, path: str, run: Run) -> tuple[AddedRule, ...]:
    """Read the confirmed rules of a file; refuse those that the policy does not allow."""
    from dpsynth.bundle import ledger_of, require_allowed
    from dpsynth.errors import InputError
    from dpsynth.synthesis import read_rules

    found = read_rules(path)
    if not found:
        raise InputError(
            f"no rule in {path} is confirmed; write your name behind confirmed_by of those that "
            "hold, or leave out --rules"
        )
    if any(not one.covered for one in found):
        require_allowed(found, ledger_of(run, None))
        console.advice("a rule was read off the data: the guarantee does not cover it")
    return found


@dataclass(frozen=True)
class Drawing:
    """What is drawn of a run, and where to.

    Attributes:
        folder: of the run.
        run: what a fit learned.
        output: the table, or the folder of linked ones.
        size: rows, or patients.
        seed: of the draw; None for a new one.
        suffix: of the files of linked tables.
        force: whether what is there is replaced.
        rules: that people added after the fit.
    """

    folder: str
    run: Run
    output: str
    size: int
    seed: int | None
    suffix: str
    force: bool
    rules: tuple[AddedRule, ...] = ()

    @property
    def is_single(self) -> bool:
        """Whether the run is of one table."""
        from dpsynth.schema import Schema

        return isinstance(self.run.schema, Schema)

    def drawn(self, console: Console, law: dict[str, Any], workers: int | None) -> None:
        """Draw rows, or patients, and record them in the run unless the user has set shares."""
        from dpsynth.synthesis import Sampler, Support, record_sample, write_drawn

        seed, options = self._prepared(internal=self.run.certificate is None)
        sampler: Sampler = Sampler.of(self.run, **law)
        kept = law["balance"] is None
        support = None
        if kept and law["where"] is not None:
            support = Support.of(sampler, self.run, self.size)
        digests = write_drawn(
            self.run,
            sampler,
            self.output,
            self.size,
            seed=seed,
            workers=workers,
            progress=lambda part: console.progress("sampling", part),
            **options,
        )
        if kept:
            record_sample(
                self.folder,
                self.output,
                size=self.size,
                seed=seed,
                condition=law["where"],
                plain=law["plain"],
                rules=self.rules,
                digests=digests,
            )
        values: dict[str, Any] = {} if support is None else {"condition": support.to_dict()}
        lines = [] if support is None else support.lines
        if sampler.acceptance.drawn:
            values["met_rules"] = sampler.acceptance.share
            noun = "row" if self.is_single else "patient"
            lines = [*lines, f"rules       {sampler.acceptance.words(noun)}"]
        if self.rules:
            values["added_rules"] = [one.to_dict() for one in self.rules]
            lines = [*lines, *(f"added       {one.words}" for one in self.rules)]
        self._show(console, self.size, seed, digests, values, lines, kept=kept)

    def completed(self, console: Console, like: str) -> None:
        """Complete the rows of a file, which may hold cells of a patient."""
        from dpsynth.synthesis import Completion
        from dpsynth.tables import write_synthetic

        seed, options = self._prepared(internal=True)
        frame = Completion.read(self.run, like).frame(seed=seed)
        digests = write_synthetic([frame], self.output, self.run.schema, **options)
        self._show(console, len(frame), seed, digests, {}, [], kept=False)

    def _prepared(self, *, internal: bool) -> tuple[int, dict[str, Any]]:
        """Check the output; return the seed, and how files are written."""
        from dpsynth._util.seeds import fresh_seed
        from dpsynth.files import check_apart
        from dpsynth.synthesis import check_replaced

        if internal:
            check_apart(self.output)
        if self.force:
            check_replaced(self.folder, self.output)
        seed = fresh_seed() if self.seed is None else self.seed
        return seed, {"suffix": self.suffix, "overwrite": self.force, "private": internal}

    def _show(
        self,
        console: Console,
        size: int,
        seed: int,
        digests: dict[str, str],
        values: dict[str, Any],
        lines: list[str],
        *,
        kept: bool,
    ) -> None:
        """Say what was drawn."""
        from dpsynth.schema import file_stem

        stamps = [*self.run.stamps, *([] if kept else [ON_REQUEST])]
        if self.is_single:
            (sha256,) = digests.values()
            found = {"table": self.output, "rows": size, "seed": seed, "sha256": sha256}
            head = [
                f"table       {self.output}: {size} synthetic rows",
                f"seed        {seed}",
                f"sha256      {sha256}",
            ]
            advice = "Synthetic rows are not linked to each other and have no patient key."
        else:
            files = {
                name: str(Path(self.output, file_stem(name) + self.suffix)) for name in digests
            }
            found = {"folder": self.output, "tables": files, "patients": size, "seed": seed}
            found |= {"sha256": digests}
            head = [
                f"cohort      {self.output}: {size} synthetic patients in {len(files)} tables",
                *(f"table       {file}" for file in files.values()),
                f"seed        {seed}",
            ]
            advice = "Keys belong to synthetic patients; they agree between the tables."
        lines = [*head, *lines]
        if not kept:
            noun = "rows" if self.is_single else "patients"
            lines.append(f"release     no: the run does not record {noun} of this kind")
        if self.run.certificate is None:
            what = "this table" if self.is_single else "these tables"
            lines.append(f"privacy     NONE: fitted without privacy, so keep {what} in the office")
        console.result("sample", found | {"stamps": stamps} | values, lines)
        console.advice(advice)

    def replicates(self, console: Console, m: int, where: str | None) -> None:
        """Write replicates of the run, and say how to use them."""
        from dpsynth.synthesis import write_replicates

        console.progress("replicates", 0.0)
        records = write_replicates(
            self.folder,
            m,
            self.output,
            size=self.size,
            seed=self.seed,
            where=where,
            suffix=self.suffix,
            overwrite=self.force,
            progress=lambda part: console.progress("replicates", part),
        )
        files = [str(Path(self.output).parent / one.name) for one in records]
        single, seed = self.is_single, records[0].seed
        values = {
            "tables" if single else "folders": files,
            "rows" if single else "patients": self.size,
            "seed": seed,
            "sha256": [one.sha256 if single else one.tables for one in records],
        }
        what = "rows" if single else "patients"
        use = "errors; release a sample" if single else "errors by patient; release a cohort"
        lines = [
            f"replicates  {files[0]} to {files[-1]}: {self.size} synthetic {what} each",
            f"seed        {seed}",
            f"use         for standard {use}, not a replicate",
        ]
        console.result("replicates", values, lines)
        by_patient = "estimate and its variance, by patient, on each cohort"
        estimate = "estimate on each table" if single else by_patient
        console.advice(
            f"Next: compute your {estimate}, then combine them with "
            "dpsynth.eval.combine.combine(estimates, variances, original=...). See "
            "docs/inference.md."
        )
