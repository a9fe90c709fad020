"""Words and tables of an audit: rates, findings, and what an attack could have seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from dpsynth._util.formatting import at_most
from dpsynth.eval.attacks import sights
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.report import formatting
from dpsynth.eval.report.formatting import counted, percent
from dpsynth.eval.report.rendering import ReportTable

Details = Mapping[str, Any]

FAMILIES = {one.key: one.title for one in ATTACKS} | {
    "training": "Canaries",
    "shadows": "Shadow models",
}


class Lines(ReportTable):
    """A table whose lines become paragraphs on a narrow screen, each cell under its name."""


def sentence(text: object, *, capital: bool = True) -> str:
    """Make a finding's words a sentence of their own; without ``capital`` a name may begin it.

    >>> sentence("nothing was found"), sentence("hiv was guessed", capital=False)
    ('Nothing was found.', 'hiv was guessed.')
    """
    whole = formatting.shown(text).strip()
    if not whole:
        return ""
    first = whole[0].upper() if capital else whole[0]
    return first + whole[1:] + ("" if whole[-1] in ".!?" else ".")


def rate(entry: Details | None, note: str = "") -> Markup | str:
    """Write a rate with its interval of 95 %, and below it the counts."""
    if entry is None:
        return "–"
    counts = f"{entry['hits']:,} of {entry['runs']:,}{note}"
    return Markup('<span class="whole">{}</span> <span class="references">{}</span>').format(
        share(entry), counts
    )


def share(entry: Details) -> str:
    """Write a rate with its interval.

    >>> share({"value": 0.012, "low": 0.006, "high": 0.021})
    '1.2 % (0.60–2.1 %)'
    """
    low = percent(entry["low"]).removesuffix(" %")
    return f"{percent(entry['value'])} ({low}–{percent(entry['high'])})"


def excess(entry: Details | None) -> str:
    """Write a success beyond control, in hundredths, with its interval.

    >>> excess({"value": 0.003, "low": -0.002, "high": 0.008})
    '0.30 % (−0.20 % to 0.80 %)'
    """
    if entry is None or entry.get("value") is None:
        return "–"
    if entry.get("low") is None or entry.get("high") is None:
        return _signed(entry["value"])
    return f"{_signed(entry['value'])} ({_signed(entry['low'])} to {_signed(entry['high'])})"


def _signed(number: float) -> str:
    if number < -1:
        return "below −100 %"
    return f"−{percent(-number)}" if number < 0 else percent(number)


def level(share: float) -> str:
    """Write a share that was set beforehand, without digits that say nothing.

    >>> level(0.001), level(0.05)
    ('0.1 %', '5 %')
    """
    return f"{100 * share:.6g} %"


def auc(entry: Details | None) -> str:
    """Write an area under the curve with its interval."""
    return formatting.estimate(entry, 3)


def epsilon(value: float | None) -> str:
    """Write an epsilon with at most two digits after the point, none that says nothing.

    >>> epsilon(0.4249), epsilon(3.0), epsilon(12.34), epsilon(0.0), epsilon(None)
    ('0.42', '3', '12.34', '0', '–')
    """
    if value is None:
        return "–"
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def at_least(value: float) -> str:
    """Write a lower bound of epsilon, never rounded upwards.

    >>> at_least(0.4279), at_least(3.0), at_least(0.004)
    ('0.42', '3', '0')
    """
    return epsilon(math.floor(100 * Fraction(repr(float(value)))) / 100)


def findings(audit: Details, family: str) -> list[Details]:
    """Return the findings of one kind of attack."""
    return [
        one for one in audit.get("findings") or [] if str(one["key"]).partition(":")[0] == family
    ]


def found(audit: Details, key: str) -> bool:
    """Whether the finding of a key says that the attack succeeded."""
    return any(one["key"] == key and one["found"] for one in audit.get("findings") or [])


def outcome(audit: Details, family: str) -> str:
    """Say in a line how one kind of attack fared."""
    tests = findings(audit, family)
    if not tests:
        return "no test could be made"
    if hits := [one["title"] for one in tests if one["found"]]:
        return f"succeeded: {joined(hits, 3)}"
    return f"{counted(len(tests), 'test')}, none of which succeeded"


def expected(control: Details) -> str:
    """Say what a control must show."""
    return "must be found" if control["kind"] == "positive" else "nothing may be found"


def plugins(audit: Details) -> list[Details]:
    """Return the attacks of other packages that took part: key, title, package and version."""
    return list(audit.get("plugins") or [])


def origin(plugin: Details) -> str:
    """Say where another package's attack comes from.

    >>> origin({"title": "Echoes", "package": "echo-attack", "version": "1.2"})
    'Echoes: an attack of the package echo-attack, version 1.2, which is not part of dpsynth'
    """
    return (
        f"{plugin['title']}: an attack of the package {plugin['package']}, version "
        f"{plugin['version']}, which is not part of dpsynth"
    )


def family_name(audit: Details, family: str) -> str:
    """Name a kind of attack, by the audit where it is another package's."""
    for plugin in plugins(audit):
        if plugin["key"] == family:
            return str(plugin["title"])
    return FAMILIES.get(family, family)


def named(audit: Details, key: str) -> str:
    """Name the attack of a key: of a finding, or of a kind of attack."""
    for finding in audit.get("findings") or []:
        if finding["key"] == key:
            return str(finding["title"])
    family, _, rest = str(key).partition(":")
    name = family_name(audit, family)
    return f"{name}: {rest}" if rest else name


def seen(audit: Details) -> list[str]:
    """Say what an audit could have seen: the least leak in each unit, and who would have.

    An attack whose control failed is not believed to see anything, whatever its power.
    """
    lines, able = [], {sight.key for sight in sights(audit) if sight.sees}
    for unit, words in _LEAKS.items():
        powers = [power for power in audit.get("powers") or [] if power["unit"] == unit]
        known = [one for one in powers if one.get("least") is not None and one["key"] in able]
        if known:
            best = min(known, key=lambda power: float(power["least"]))
            lines.append(f"{words.format(_least(unit, best))} (by: {named(audit, best['key'])}).")
    return lines


def blind(audit: Details) -> list[str]:
    """Say of the attacks that could have seen no leak why not, and what to change.

    Those with the same reason share a line.
    """
    titles: dict[tuple[str, str], list[object]] = {}
    for sight in sights(audit):
        if sight.blind:
            titles.setdefault((sight.reason, sight.remedy), []).append(sight.title)
    return [
        f"{joined(names, 12)}: {formatting.shown(reason)}. What to change: "
        f"{formatting.shown(remedy)}."
        for (reason, remedy), names in titles.items()
    ]


_LEAKS = {
    "epsilon": "A training that leaks epsilon {} or more",
    "auc": "People in the data told from other people with an AUC of {} or more, where 0.5 is "
    "guessing and 1 is never wrong",
    "share": "An attack that succeeds for {} or more of the people in the data beyond what it does "
    "for other people",
}


def _least(unit: str, power: Details) -> str:
    minimum = float(power["least"])
    if unit == "share":
        return percent(minimum)
    return (
        at_most(minimum) if unit == "epsilon" else f"{math.ceil(1000 * minimum - 1e-9) / 1000:.3f}"
    )


def joined(names: Sequence[object], maximum: int) -> str:
    """Join names that may hold commas.

    >>> joined(["rows, equal", "people", "links"], 2)
    'rows, equal; people; and 1 more'
    """
    texts = [formatting.shown(name) for name in names]
    rest = [f"and {len(texts) - maximum} more"] if len(texts) > maximum else []
    return "; ".join([*texts[:maximum], *rest])


def below(first: str, second: str) -> Markup:
    """Set a quieter line below a cell's text."""
    return Markup('<bdi>{}</bdi> <span class="references"><bdi>{}</bdi></span>').format(
        formatting.shown(first), formatting.shown(second)
    )


def other_table(audit: Details, evaluation: Details) -> str:
    """Warn if an audit and an evaluation are known to be of different tables or schemas."""
    for words, *path in (
        ("synthetic tables", "tables", "synthetic", "sha256"),
        ("schemas", "schema", "sha256"),
    ):
        known = [_at(one, path) for one in (audit, evaluation)]
        if all(known) and known[0] != known[1]:
            return (
                f"The audit and the evaluation are of different {words}: their SHA-256 differ. "
                "What is said of one does not hold for the other."
            )
    return ""


def _at(document: Details, path: list[str]) -> Any:
    value: Any = document
    for name in path:
        value = (value or {}).get(name)
    return value
