"""An office's other documents: requests, words of a release, settings, gates, keys; and names.

Each goes through the command line, so that what is judged is what a person would see.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzz_documents import TEXTS, document_text
from fuzz_good import Files, Good, write_files

STATISTICS: dict[str, Any] = {
    "schema": "demo",
    "confidence": 0.95,
    "statistics": [
        {"name": "patients by sex", "count": "patients", "by": ["sex"]},
        {"name": "age", "quantiles": "age", "shares": [0.25, 0.5, 0.75]},
    ],
}
_COUNT = {"value": 9000, "basis": "yearly report"}
LINKAGE: dict[str, Any] = {
    "linkage": "births and cancers",
    "registers": [
        {"name": "births", "key": "birth_id", "population": _COUNT},
        {"name": "cancers", "key": "case_id", "population": _COUNT},
    ],
    "score": {"column": "score", "thresholds": [0.5, 0.8, 0.95]},
    "match": {"column": "match", "matches": ["1"], "others": ["0"]},
    "cap": {"matches": 1, "others": 3, "basis": "the blocking keeps 3"},
    "same_people": True,
}
ABOUT = {"title": "A table", "version": "1.0.0", "licence": "CC-BY-4.0", "keywords": ["diabetes"]}
SETTINGS = {
    "schema": "demo",
    "data": "table.csv",
    "dataset": "ward",
    "epsilon": 1,
    "delta": 1e-6,
    "output": "bundle",
}
GATES = {"version": 1, "gates": [{"key": "tvd2", "at_most": 0.1, "reason": "the board"}]}
BUDGET = ["--epsilon", "1", "--delta", "1e-6"]

OBEYED = ("\x1b[2J\x1b[H", "\x9b2J", "\x1b]0;x\x07", "\r", "\b" * 9, "\x7f", "\u202e", "\u2066")
OBEYED += ("\u200b", "\u200f", "\u2028", "\u2029", "\ufeff", "\U000e0041", "\x1b[8m", "\n", "\x0c")
WORDS = (
    "verified",
    "ok  every file",
    "dpsynth: ",
    "data",
    "\u0645\u0631\u064a\u0645",
    "Zo\u00eb",
    "",
)
ABSURD = ("1e999", "-1e999", "1e-999", "nan", "inf", "-0", "0", "-1", "9" * 400, "-" + "9" * 400)
ABSURD += ("\u0663", "1_0", "0x10", "", " 1", "1e3", "1" + "0" * 30, "0." + "0" * 400 + "1", "+5")
KEY = b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n"


def hostile_name(rng: Random) -> str:
    """Make a name of a file that a terminal would obey."""
    parts = [rng.choice((*OBEYED, *WORDS)) for _ in range(rng.randrange(1, 6))]
    return "".join([*parts, rng.choice(OBEYED)]).replace("/", "")[:60] + rng.choice(("", ".csv"))


def office_call(good: Good, rng: Random, folder: Path) -> list[str]:
    """Write a document or a folder with something hostile in it; return a command that reads it."""
    name = hostile_name(rng) if rng.random() < 0.5 else "document"
    kind = rng.choice(tuple(_KINDS))
    if kind == "folder":
        return _folder(good, rng, folder)
    if kind == "options":
        write_files(folder / "run", good.runs["independent"])
        words = [word.format(folder=folder) for word in rng.choice(_OPTIONS)]
        return [*words[:-1], f"{words[-1]}={rng.choice(ABSURD)}"]
    document, words = _KINDS[kind]
    suffix = rng.choice((".json", ".yaml"))
    path = folder / f"{name}{suffix}"
    if document is None:
        content = rng.choice((KEY, KEY[:40], rng.choice(TEXTS).encode("utf-8", "replace")))
    else:
        content = document_text(rng, document, is_json=suffix == ".json")
    path.write_bytes(content)
    (folder / "table.csv").write_bytes(b"patient,sex,age\n1,F,40\n")
    write_files(folder / "run", good.runs["independent"])
    return [word.format(document=path, folder=folder) for word in words]


def _folder(good: Good, rng: Random, folder: Path) -> list[str]:
    """Put foreign files into a bundle or into statistics."""
    place = folder / hostile_name(rng) if rng.random() < 0.3 else folder / "received"
    write_files(place, rng.choice((good.bundle, statistics_files())))
    for _ in range(rng.randrange(1, 4)):
        foreign = place / hostile_name(rng)
        rng.choice((Path.touch, Path.mkdir, lambda path: path.symlink_to("/dev/zero")))(foreign)
    return [rng.choice(("verify", "verify", "sign")), str(place), "--key", str(folder / "key")]


@cache
def statistics_files() -> Files:
    """Answer a small request once."""
    import dpsynth
    from dpsynth.ledger.ledger import Ledger
    from dpsynth.stats import StatisticsRequest
    from dpsynth.tables.simulated import simulate

    with tempfile.TemporaryDirectory() as folder:
        found = dpsynth.statistics(
            simulate(100, seed=1),
            StatisticsRequest.from_dict(STATISTICS),
            epsilon=1.0,
            delta=1e-6,
            dataset="fuzz",
            ledger=Ledger.create(Path(folder) / "ledger.sqlite"),
        )
        return dict(found.files())


_Kind = tuple[Any, list[str]]
_RELEASE = ["release", "{folder}/run", "-o", "{folder}/out", "--rows", "5"]
_KINDS: dict[str, _Kind] = {
    "statistics": (STATISTICS, ["stats", "{document}", *BUDGET]),
    "plan": (STATISTICS, ["plan", "{document}", *BUDGET]),
    "linkage": (LINKAGE, ["linkage", "{document}", *BUDGET]),
    "about": (ABOUT, [*_RELEASE, "--about", "{document}"]),
    "settings": (SETTINGS, ["run", "--config", "{document}"]),
    "gates": (
        GATES,
        [
            *("evaluate", "demo", "{folder}/table.csv", "--synthetic", "{folder}/table.csv"),
            *("--gates", "{document}"),
        ],
    ),
    "key": (None, ["verify", "{folder}", "--key", "{document}"]),
    "private key": (None, ["sign", "{folder}", "--key", "{document}"]),
    "folder": (None, []),
    "options": (None, []),
}
_SAMPLE = ["sample", "{folder}/run", "-o", "{folder}/out.csv"]
_OPTIONS: tuple[list[str], ...] = (  # the last one takes an absurd number
    *([*_SAMPLE, *("--rows", "5") * (name != "--rows"), name] for name in ("--rows", "--seed")),
    *([*_SAMPLE, "--rows", "5", name] for name in ("--replicates", "--workers")),
    ["plan", "demo", "--delta", "1e-6", "--epsilon"],
    ["plan", "demo", "--epsilon", "1", "--delta"],
    ["release", "{folder}/run", "-o", "{folder}/bundle", "--rows"],
)
