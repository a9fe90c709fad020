"""A bundle of a real table: how long it takes to write, verify, sign, and how large it is.

Needs diabetes130 (DPSYNTH_DATA names its folder). Fits `mixture` once, releases 100 000 rows, and
times the release, the verification (with and without the publisher's key) and the signature. Then
each kind of tampering is tried on copies, by hand and as a forger who renews the manifest, and the
first finding is printed.

    python bench/bundles.py [--rows 100000] [--table diabetes130]
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dpsynth._util.strict_json import file_digest, read_document, written
from dpsynth.bundle.format.about import About
from dpsynth.bundle.format.signature import create_key
from dpsynth.bundle.signing import sign
from dpsynth.bundle.verifier import verify
from dpsynth.bundle.writer import release
from dpsynth.errors import VerificationError
from dpsynth.ledger.ledger import Ledger
from dpsynth.synthesis.fitting import fit

FILES = {"cardio": "cardio.csv.gz", "diabetes130": "diabetes130.csv.gz"}
TEXT, TABLE = "data/synthetic.csv", "data/synthetic.parquet"
Change = Callable[[Path], Any]


def main() -> None:
    """Make the bundle, time it, and tamper with it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--table", default="diabetes130", choices=sorted(FILES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = Path(os.environ.get("DPSYNTH_DATA", "../shared/data")) / FILES[options.table]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = Ledger.create(folder / "ledger.sqlite")
        timed("fit (mixture)", lambda: fitted(data, options.table, folder / "run", ledger))
        more = {"rows": options.rows, "ledger": ledger, "about": About(publisher="A hospital")}
        made = [
            timed(
                f"release {options.rows} rows",
                lambda place=place: release(folder / "run", folder / place, seed=1, **more),
            )
            for place in ("bundle", "again")
        ]
        bundle = made[0]
        private, public = create_key(folder / "office.key", None)
        timed("sign, with verification", lambda: sign(bundle, private))
        timed("verify with the key", lambda: verify(bundle, key=public))
        print_sizes(bundle)
        print(f"\nthe second bundle is the same, byte by byte: {same(*made)}\n")
        other = release(folder / "run", folder / "other", seed=2, **more)
        for case, change in tampering(other).items():
            for renewed in (False, True):
                print(f"| {case}{', manifest renewed' if renewed else ''} | ", end="")
                print(f"{tampered(bundle, folder / 'copy', change, renewed, public)} |", flush=True)


def fitted(data: Path, table: str, output: Path, ledger: Ledger) -> None:
    """Fit the quickest generator that knows pairs of columns."""
    budget = {"epsilon": 3.0, "delta": 1e-6, "dataset": table}
    fit(data, table, model="mixture", output=output, ledger=ledger, **budget)


def timed(title: str, action: Callable[[], Any]) -> Any:
    """Do something, and print how long it took."""
    started = time.perf_counter()
    made = action()
    print(f"{title}: {time.perf_counter() - started:.1f} s", flush=True)
    return made


def print_sizes(bundle: Path) -> None:
    """Print the size of each file."""
    sizes = {p.relative_to(bundle): p.stat().st_size for p in bundle.rglob("*") if p.is_file()}
    for path, size in sorted(sizes.items()):
        print(f"  {str(path):<26} {size / 1e6:8.3f} MB")
    print(f"  {'all':<26} {sum(sizes.values()) / 1e6:8.3f} MB")


def same(one: Path, two: Path) -> bool:
    """Say whether all files but the signature are equal."""
    names = [
        {str(p.relative_to(b)): file_digest(p) for p in b.rglob("*") if p.is_file()}
        for b in (one, two)
    ]
    return {k: v for k, v in names[0].items() if not k.endswith(".sig")} == names[1]


def tampering(other: Path) -> dict[str, Change]:
    """Give each kind of tampering; ``other`` is another sound bundle of the same run."""

    def edit(file: str, change: Callable[[dict[str, Any]], Any]) -> Change:
        def act(bundle: Path) -> None:
            document = read_document(bundle / file)
            change(document)
            (bundle / file).write_bytes(written(document))

        return act

    def swap(*files: str) -> Change:
        return lambda bundle: [shutil.copyfile(other / file, bundle / file) for file in files]

    def cell(bundle: Path) -> None:
        with (bundle / TEXT).open(newline="") as file:
            rows = list(csv.reader(file))
        rows[1], rows[2] = rows[2], rows[1]
        with (bundle / TEXT).open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)

    def quoted(bundle: Path) -> None:
        header, line, rest = (bundle / TEXT).read_text().split("\n", 2)
        first, others = line.split(",", 1)
        (bundle / TEXT).write_text("\n".join([header, f'"{first}",{others}', rest]))

    def noted(bundle: Path) -> None:
        content = (bundle / TABLE).read_bytes()
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        (bundle / TABLE).write_bytes(content[:footer] + b"a note" + content[footer:])

    def another(document: dict[str, Any]) -> None:
        document["ledger"] |= {"entry": "9" * 32, "record": 7, "fits": 2, "epsilon_total": 6.0}

    return {
        "two rows of the text exchanged": cell,
        "a cell of the text quoted": quoted,
        "a note between the columns of the Parquet table": noted,
        "the text table swapped": swap(TEXT),
        "both tables swapped": swap(TEXT, TABLE),
        "both tables, page, card and Croissant document swapped": swap(
            TEXT, TABLE, "report.html", "CARD.md", "croissant.json"
        ),
        "an event removed": edit("privacy.json", lambda d: d["events"].pop()),
        "noise of an event overstated": edit(
            "privacy.json", lambda d: d["events"][0].update(sigma=2 * d["events"][0]["sigma"])
        ),
        "epsilon lowered": edit("privacy.json", lambda d: d.update(epsilon=1.0)),
        "a certificate of another run": edit("privacy.json", another),
        "a limit struck out": edit("privacy.json", lambda d: d["not_covered"].pop()),
        "a file added": lambda bundle: (bundle / "patients.csv").write_text("x"),
        "the card edited": lambda bundle: (bundle / "CARD.md").write_text("# Perfectly safe\n"),
        "the page edited": lambda bundle: (bundle / "report.html").write_text("<p>safe</p>"),
        "the licence edited": edit(
            "datapackage.json", lambda d: d.update(licenses=[{"name": "CC0-1.0"}])
        ),
    }


def tampered(bundle: Path, copy: Path, change: Change, renewed: bool, public: Path) -> str:
    """Change a copy, verify it with and without the publisher's key, and tell what was found."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(bundle, copy)
    change(copy)
    if renewed:
        manifest = json.loads((copy / "datapackage.json").read_text())
        for item in manifest["resources"]:
            item["hash"] = f"sha256:{file_digest(copy / item['path'])}"
            counted = "bytes" if "bytes" in item else "dpsynth:bytes"
            item[counted] = (copy / item["path"]).stat().st_size
        (copy / "datapackage.json").write_bytes(written(manifest))
    return f"{finding(copy, None)} | {finding(copy, public)}"


def finding(bundle: Path, key: Path | None) -> str:
    """Return the first finding; "nothing" if there is none."""
    try:
        verify(bundle, key=key)
    except VerificationError as error:
        return str(error.findings[0])
    return "NOTHING"


if __name__ == "__main__":
    main()
