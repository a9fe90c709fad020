"""Sentences that deny or promise something of dpsynth: they fail when the product says otherwise.

Two kinds are looked for on all pages, in `--help`, and in every text and docstring of the code.

- **Denials**: "there is no X", "dpsynth does not model X", "X is not built". X is a feature by its
  usual name (`FEATURES`), a command or a generator. Where the product has it, the sentence is
  wrong.
- **Promises**: "never", "only", "no". Each kind of promise (`PROMISES`) comes with a predicate
  about the product: a sentence may make it only while the predicate holds, or with a qualifier.

The broken twins are sentences that once stood on these pages, and a product without a feature.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import dpsynth
from dpsynth.bundle.pages import dpia_paragraph
from dpsynth.certificate import Certificate, bounds_of, certify, not_covered, protected
from dpsynth.encoding import Codec, read_cohort
from dpsynth.models.registry import LINKED, NAMES
from dpsynth.privacy import (
    CodeDiscovery,
    LinkCounts,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    Share,
    Unit,
)
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import Schema, load_any
from dpsynth.tables import open_table, simulate

from ..support.command_line import PATHS

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/**/*.md"]
CODE = ["dpsynth/**/*.py", "models/**/*.py", "eval/**/*.py"]
TEMPLATES = ["dpsynth/**/*.html"]


# what there is


@cache
def commands() -> frozenset[str]:
    """The names of all commands, ``ledger show`` and the like among them."""
    return frozenset(PATHS)


def command(name: str) -> Callable[[], bool]:
    return lambda: name in commands()


def module(name: str) -> Callable[[], bool]:
    def there() -> bool:
        try:
            import_module(name)
        except ImportError:
            return False
        return True

    return there


def histories() -> bool:
    return bool(LINKED)


FEATURES: dict[str, Callable[[], bool]] = {
    r"local,? (?:[\w-]+,? (?:and |or )?){0,4}models?": command("local"),
    r"local differential privacy": command("local"),
    r"randomi[sz]ed response": command("local"),
    r"(?:record )?linkage(?: of (?:two )?registers)?": command("linkage"),
    r"labels? (?:of public rows|by teachers)|teachers|PATE": command("labels"),
    r"(?:private )?statistics": command("stats"),
    r"forecasts?": command("plan"),
    r"sequences? of (?:visits|rows|stays|events)": histories,
    r"histories|linked tables|time series|longitudinal data": histories,
    r"latent vector|variational autoencoder": lambda: "tvae" in NAMES,
    r"conditional GAN|GANs?": lambda: "ctgan" in NAMES,
    r"undeclared (?:codes|keys)|discovered codes": module("dpsynth.privacy.discovery"),
    r"Laplace noise|Laplace mechanism": module("dpsynth.privacy.answer_events"),
    r"shards": module("dpsynth.encoding.shards"),
    r"privacy filter": module("dpsynth.privacy.filter"),
    r"group privacy": module("dpsynth.privacy.unit"),
    r"resumed fits|checkpoints": module("dpsynth.models.checkpoint"),
}
"""Features by the names that a page gives them, and whether the product has them."""


def named() -> dict[str, Callable[[], bool]]:
    """Commands and generators by their own names, as pages write them."""
    found: dict[str, Callable[[], bool]] = {}
    for name in commands():
        found[rf"`?dpsynth {re.escape(name)}`?(?! \w+`)"] = command(name)
        found[rf"(?:command|verb) `{re.escape(name)}`|`{re.escape(name)}` command"] = command(name)
    for name in {*NAMES, *LINKED}:
        known = re.escape(name)
        pattern = rf"(?:generator|model) `?{known}`?|`{known}` (?:generator|model)"
        found[pattern] = lambda name=name: name in {*NAMES, *LINKED}
    return found


_US = r"(?:dpsynth|[Tt]he program|[Tt]his package|[Ii]t|[Tt]here|[Ww]e)"
_FEW = r"(?:[\w`-]+(?:,? (?:and |or )?| )){0,3}?"
_HAS = r"(?:has|have|is|are|offers|contains|knows|supports)"
_DOES = r"(?:have|offer|contain|support|cover|model|include|learn|know|make|train|count)"
_BUILT = r"(?:built|modelled|supported|covered|offered|implemented|available|part of)"


@cache
def denials(noun: str) -> re.Pattern[str]:
    """What says that there is no such thing; other libraries are no subject of ours."""
    thing = rf"(?:{noun})(?!\w)"
    ways = (
        rf"{_US} (?:still )?{_HAS} no {_FEW}{thing}",
        rf"{_US} (?:does|do|can|will) ?not (?:yet )?{_DOES} {_FEW}{thing}",
        rf"(?:^|[(>*] ?)[Nn]o {_FEW}{thing}(?= (?:is|are) (?:there|{_BUILT}))",
        rf"\b{thing} (?:[\w`-]+ ){{0,3}}?(?:is|are) not (?:yet )?{_BUILT}\b",
        rf"\b{thing} (?:does|do) not (?:yet )?exist\b",
    )
    return re.compile("|".join(ways))


ABSENT_COLUMNS = ("not covered", "what it does not do")
ABSENT_SECTIONS = ("## Not built yet", "## What an audit does not see")
"""Columns of tables and sections of pages in which whatever is named is said to be absent."""

EXEMPT = {
    "statistics of linked tables of tests or events, or by the time of their rows": (
        "names which statistics are absent"
    ),
    "registers whose datasets are in two ledgers, and linkage within one register": (
        "names which linkage is absent"
    ),
    "linked tables](cohorts.md) keep that": "says where it is",
    "except such answers": "says where it is",
    "whole histories are attacked": "says where it is",
    "see [": "says where it is",
}
"""Parts of such texts that name a feature for another reason."""


_NEGATION = re.compile(r"\b(?:[Nn]o|not|missing)\b")


def plain(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True)
class Sentence:
    """A sentence, and where it stands."""

    place: str
    words: str


def split(place: str, text: str) -> Iterator[Sentence]:
    """Cut a text into sentences and cells of tables; links keep their words alone."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|>] |\d+\. |\|))", text):
        for part in re.split(r"(?<=[.;:?!])\s+|\s\|\s?", plain(paragraph)):
            if part:
                yield Sentence(place, part.strip("| "))


def strings(path: Path) -> Iterator[str]:
    """Every text of a module; parts that Python joins are one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def pages() -> Iterator[tuple[str, str]]:
    for pattern in (*PAGES, *TEMPLATES):
        for path in sorted(ROOT.glob(pattern)):
            yield str(path.relative_to(ROOT)), path.read_text()


def rendered() -> Iterator[tuple[str, str]]:
    """Sentences that certificates and pages are made of, for several units."""
    for name in ("demo", "cardio", "clinic"):
        schema = load_any(name)
        unit = Unit.of(schema)
        for words in not_covered(schema, None):
            yield f"certificate of {name}", words
        for one in (unit, replace(unit, max_rows=1), replace(unit, keep="window", max_rows=4)):
            for who in (one, replace(one, person=None, max_units=1, max_units_basis=None)):
                yield f"page of {name}", protected(who, bounds_of(schema))
        share = Share(LinkCounts("pairs", 1, 1, 1, UNDECIDED), 1.0)
        plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-6), [share])
        document = certify(schema, plan, model="independent", charge=None)
        for words in dpia_paragraph(schema, Certificate.from_dict(document)):
            yield f"impact assessment of {name}", words


@cache
def sentences() -> tuple[Sentence, ...]:
    """All that dpsynth says in public: pages, help, and the texts of its code."""
    found = [one for place, text in (*pages(), *rendered()) for one in split(place, text)]
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            place = str(path.relative_to(ROOT))
            found += [one for text in strings(path) if " " in text for one in split(place, text)]
    return tuple(found)


def denied(every: tuple[Sentence, ...]) -> list[str]:
    """List the sentences that deny what the product has."""
    nouns = FEATURES | named()
    any_noun = re.compile("|".join(f"(?:{noun})" for noun in nouns))
    about = [one for one in every if _NEGATION.search(one.words) and any_noun.search(one.words)]
    return [
        f"{one.place}: {one.words}"
        for noun, there in nouns.items()
        for one in about
        if re.search(noun, one.words) and denials(noun).search(one.words) and there()
    ]


def absent_texts(text: str) -> Iterator[str]:
    """Yield what a page names as absent, by its columns and sections."""
    column, within = -1, False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            column = -1
        elif column < 0:
            column = next((n for n, cell in enumerate(cells) if cell in ABSENT_COLUMNS), 10**6)
        elif column < len(cells):
            yield cells[column]
        within = line in ABSENT_SECTIONS if line.startswith("## ") else within
        if within and not line.startswith("## "):
            yield line


def said_to_be_absent(texts: dict[str, str]) -> list[str]:
    """List features that a place for what is absent names, though the product has them."""
    return [
        f"{place}: {absent}"
        for place, text in texts.items()
        for absent in absent_texts(text)
        if not any(words in absent.lower() for words in EXEMPT)
        for noun, there in FEATURES.items()
        if re.search(rf"\b(?:{noun})\b", absent) and there()
    ]


def test_no_sentence_denies_what_there_is() -> None:
    assert denied(sentences()) == []


def test_nothing_is_listed_as_absent_that_is_there() -> None:
    assert said_to_be_absent(dict(pages())) == []


WRONG = [
    "an operator who is not trusted: dpsynth has no local, shuffled or multi-party model",
    "There is no local model.",
    "dpsynth does not model sequences of visits yet.",
    "Rows are not linked to a person, and sequences of visits are not modelled.",
    "There is no `dpsynth linkage`.",
    "dpsynth has no generator `tvae`.",
    "Record linkage is not supported.",
    "It does not support linked tables.",
    "We have no statistics.",
    "There is no command `labels`.",
]
RIGHT = [
    "OpenDP has no variance where the number is private.",
    "There is no ledger at this place.",
    "Times of day are not modelled.",
    "dpsynth has no shuffled or multi-party model.",
    "No ledger was charged.",
]


@pytest.mark.parametrize("words", WRONG)
def test_a_sentence_that_denies_a_feature_is_caught(words: str) -> None:
    assert denied((Sentence("page", words),))


@pytest.mark.parametrize("words", RIGHT)
def test_a_sentence_that_denies_no_feature_passes(words: str) -> None:
    assert not denied((Sentence("page", words),))


def test_a_denial_is_right_where_the_feature_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sentences, of a product without the command."""
    without = frozenset(name for name in commands() if not name.startswith("local"))
    monkeypatch.setattr(inspect.getmodule(denied), "commands", lambda: without)
    assert not denied((Sentence("page", WRONG[0]), Sentence("page", WRONG[1])))


def test_a_feature_in_a_column_of_absences_is_caught() -> None:
    head = "| topic | what dpsynth does | not covered |\n|---|---|---|\n"
    row = "| **Synthetic data** | drawn from the run | sequences of visits; rare effects |"
    assert said_to_be_absent({"page": head + row})
    assert said_to_be_absent({"page": "## Not built yet\n\nLabels by teachers.\n"})
    other = head.replace("not covered", "shown")
    assert not said_to_be_absent({"page": other + row + "\n\nLabels by teachers.\n"})


# what is promised


def rows_are_chosen_once() -> bool:
    """Whether two readings of a table choose the same rows of each unit."""
    schema, table = Schema.load("demo"), simulate(300, seed=1)
    entropy, codec = SeededEntropy(1), Codec(schema)
    rows = [read_cohort(open_table(table, schema), codec, schema, entropy) for _ in range(2)]
    found = [sorted(map(bytes, one.codes[one.mask])) for one in rows]
    return found[0] == found[1]


def nothing_connects() -> bool:
    """Whether no part of dpsynth opens a connection, with whatever it is given."""
    return not any(
        re.search(r"import (?:psycopg|sqlalchemy|distributed|socket)", path.read_text())
        for path in ROOT.glob("dpsynth/**/*.py")
    )


def no_event_finds_structure() -> bool:
    return not hasattr(CodeDiscovery, "kind")


def no_generator_chooses() -> bool:
    return not any("TopChoice" in path.read_text() for path in ROOT.glob("models/**/*.py"))


def every_model_is_central() -> bool:
    return "local" not in commands()


def no_budget_has_a_default() -> bool:
    verbs = [dpsynth.fit, dpsynth.linkage, dpsynth.statistics]
    given = [inspect.signature(one).parameters for one in verbs]
    budget = [one[name] for one in given for name in ("epsilon", "delta")]
    return all(one.default is inspect.Parameter.empty for one in budget)


def one_group_is_charged_twice() -> bool:
    """Whether linkage of people in both registers counts twice in the budget that they share."""
    from dpsynth.ledger.ledger import _together

    return "joined" not in inspect.getsource(_together)


@dataclass(frozen=True)
class Promise:
    """A kind of sentence that may be said only while something holds of the product.

    Attributes:
        pattern: of the sentence.
        holds: what it says of the product.
        unless: words with which it may be said in any case.
        example: a sentence of the kind, without such words.
    """

    pattern: str
    holds: Callable[[], bool]
    unless: str
    example: str


PROMISES = (
    Promise(
        r"rows? of (?:each|a|every) [^.|]{0,40}\b(?:was|were|are|is) used|other rows are never|"
        r"rows of a (?:unit|patient) are never (?:counted|used)",
        rows_are_chosen_once,
        "each measurement|in memory|audit|evaluation",
        "At most one row of each value was used.",
    ),
    Promise(
        r"\bno network connection\b|\b(?:[Nn]othing|never) connects\b|`eval`, no network",
        nothing_connects,
        "unless",
        "Only their owner can read folders; no network connection; no error quotes a cell.",
    ),
    Promise(
        r"never (?:learns?|reads?|infers?) (?:any )?structure|learns no structure|"
        r"only source of structure",
        no_event_finds_structure,
        "except|unless",
        "dpsynth never learns structure from private rows.",
    ),
    Promise(
        r"dpsynth (?:uses|has|knows) (?:only )?the central model",
        every_model_is_central,
        "[Ee]xcept",
        "dpsynth uses the central model.",
    ),
    Promise(
        r"[Nn]o generator (?:here|of dpsynth) uses the exponential mechanism",
        no_generator_chooses,
        "^$",
        "No generator here uses the exponential mechanism.",
    ),
    Promise(
        r"(?i:epsilon and delta|the budget|epsilon) ha(?:s|ve) no default",
        no_budget_has_a_default,
        "^$",
        "Epsilon and delta have no default.",
    ),
    Promise(
        r"group counts epsilon twice",
        one_group_is_charged_twice,
        "^$",
        "If one group of the policy has both datasets, the group counts epsilon twice.",
    ),
)


def broken(every: tuple[Sentence, ...], promise: Promise) -> list[str]:
    """List the sentences that promise what does not hold."""
    said = [
        one
        for one in every
        if re.search(promise.pattern, one.words) and not re.search(promise.unless, one.words)
    ]
    return [f"{one.place}: {one.words}" for one in said] if said and not promise.holds() else []


@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: one.example[:40])
def test_what_is_promised_holds(promise: Promise) -> None:
    assert broken(sentences(), promise) == []


@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: one.example[:40])
def test_a_promise_that_does_not_hold_is_caught(promise: Promise) -> None:
    sentence = (Sentence("page", promise.example),)
    never = Promise(promise.pattern, lambda: False, promise.unless, promise.example)
    always = Promise(promise.pattern, lambda: True, promise.unless, promise.example)
    assert broken(sentence, never) and not broken(sentence, always)


def test_what_is_refused_after_the_charge_is_listed() -> None:
    """With the limits that the code has."""
    from dpsynth.privacy.answers import MAX_PAIRS
    from dpsynth.tables.records import MAX_LINE_LENGTH

    page = plain((ROOT / "docs/privacy.md").read_text())
    listed = page.partition("**One bit of a refused table.**")[2].partition("**One bit of")[0]
    for words in (
        *(f"{limit:,}".replace(",", " ") for limit in (MAX_PAIRS, MAX_LINE_LENGTH)),
        *("no key in any row", "column refuses", "several rows in the table of patients"),
        *("belongs to a patient", "must be text", "memory, disk or time", "diverged"),
        *("database that refuses", "formula without a value"),
    ):
        assert words in listed, words
