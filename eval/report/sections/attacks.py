"""A section for each attack on a table, and for those on a training: canaries, shadow models.

Any attack can be shown from what every attack has: findings, powers, controls and measures. An
attack with pictures of its own has a line in `SPECIAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.report import (
    Block,
    Chart,
    Expandable,
    Heading,
    Lines,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    auc,
    audit_formatting,
    charts,
    counted,
    estimate,
    excess,
    expected,
    figure,
    formatting,
    level,
    listed,
    percent,
    present,
    rate,
    sentence,
)
from dpsynth.privacy import AttackRates

Details = Mapping[str, Any]

POPULATION = (
    "What succeeds as often for other people, who are not in the data, is an inference about the "
    "population, not a leak: it would be known without them too. Only what succeeds more often "
    "for people in the data comes from their records."
)
_KINDS = {"one": "By one column", "many": "By several columns"}


def attribute(audit: Details) -> Section | None:
    """Return how often sensitive columns are guessed."""
    entries = _part(audit, "attribute", "columns")
    if not entries:
        return None
    text = (
        "The attacker has the synthetic table, knows some columns of somebody, and tries to guess "
        "a sensitive one."
    )
    lines = [
        (
            f"{entry['column']}: {entry['attack']}, {len(entry['known'])} known",
            f"by {entry['title']}; known: {listed(entry['known'], 9)}{_baseline(entry)}",
            f"attribute:{entry['column']}",
            entry["success"],
        )
        for entry in entries
    ]
    title = "Guessing sensitive columns (attribute inference)"
    return _section(audit, "attribute", title, text, lines)


def _baseline(entry: Details) -> str:
    """Say how often the commonest value is right, which needs no attack."""
    rate = entry.get("baseline")
    return f"; the commonest value is right for {percent(rate['value'])}" if rate else ""


def linkability(audit: Details) -> Section | None:
    """Return how often two halves of a record are brought together."""
    entries = _part(audit, "linkability", "splits")
    if not entries:
        return None
    text = (
        "The attacker has the synthetic table and two registers of the same people with different "
        "columns, and tries to tell which two records are of one person."
    )
    halves = [f"{listed(entry['first'], 9)} with {listed(entry['second'], 9)}" for entry in entries]
    splits = list(dict.fromkeys(halves))
    lines = [
        (
            f"Split {splits.index(both) + 1}, {counted(one['neighbours'], 'neighbour')}",
            both,
            "linkability",
            one["success"],
        )
        for one, both in zip(entries, halves, strict=True)
    ]
    return _section(audit, "linkability", "Linking records of two registers", text, lines)


def singling_out(audit: Details) -> Section | None:
    """Return how often descriptions fit one person."""
    entries = _part(audit, "singling_out", "kinds")
    if not entries:
        return None
    text = (
        "The attacker has the synthetic table alone, and tries to write descriptions that fit "
        "exactly one person."
    )
    lines = [
        (
            _KINDS.get(str(entry["kind"]), str(entry["title"])),
            f"{counted(entry['predicates'], 'description')} tried",
            f"singling_out:{entry['kind']}",
            entry["success"],
        )
        for entry in entries
    ]
    return _section(audit, "singling_out", "Singling out", text, lines)


def _part(audit: Details, name: str, inner: str) -> list[Details]:
    details = (audit.get("parts") or {}).get(name) or {}
    return list(details.get(inner) or [])


def _section(
    audit: Details,
    family: str,
    title: str,
    text: str,
    lines: Sequence[tuple[str, str, str, Details]],
) -> Section:
    """Make a section of one kind of guess: a picture, a table, and how to read them."""
    rows = []
    for name, how, key, entry in lines:
        hit = audit_formatting.found(audit, key) and (entry["excess"].get("low") or 0) > 0
        first = audit_formatting.below(f"{name} (beyond chance)" if hit else name, how)
        rows.append(Row((first, *success(entry)), hit))
    names = [name for name, *_ in lines]
    rates = [entry for *_, entry in lines]
    label = f"{title}: rates of success for people in the data and for others, as in the table"
    height = 84 + 42 * len(lines)
    picture = Chart("How often it succeeds", label, charts.successes(names, rates), height)
    table = Lines.of("Success, with intervals of 95 %", ("Attack", *SIDES, BEYOND), rows)
    blocks: tuple[Block, ...] = (
        Paragraph(text),
        Paragraph(POPULATION),
        Pictures((picture,), "wide", key="people"),
        table,
    )
    finding = audit_formatting.outcome(audit, family)
    return Section(family.replace("_", "-"), title, finding, blocks)


SMOKE = (
    "A smoke test only. Distances and copies show careless generators; they neither detect nor "
    "bound what a table gives away: a table that passes may still leak (arXiv 2505.01524, "
    "2312.05114)."
)
SIDES = ("People in the data", "Other people")
BEYOND = "In the data beyond others"


@dataclass(frozen=True)
class Curves(Pictures):
    """Pictures of curves with a key that names each line, in the order of its style.

    Attributes:
        lines: names of the curves.
        claimed: whether what a claim rules out is shaded.
    """

    lines: tuple[str, ...] = ()
    claimed: bool = False


def memorization(audit: Details) -> Section | None:
    """Return copies, distances, unique records and outliers."""
    details = (audit.get("parts") or {}).get("memorization") or {}
    if not details:
        return None
    blocks = _distances(details, audit.get("measures") or {}) + _copies(details.get("copies") or [])
    blocks += _unique(details.get("unique") or []) + _outliers(details.get("outliers") or {})
    if not blocks:
        return None
    first: list[Block] = [
        Paragraph(
            "The attacker has the synthetic table alone and takes its rows for real people: does "
            "it repeat people in the data, or come closer to them than to other people?"
        ),
        Paragraph(SMOKE, "warning"),
    ]
    if details.get("units") and details.get("rows"):
        first.append(Paragraph(_compared(details)))
    finding = f"{audit_formatting.outcome(audit, 'memorization')} (a smoke test)"
    return Section("memorization", "Copies and near copies", finding, (*first, *blocks))


def _compared(details: Details) -> str:
    rows = details["rows"]
    return (
        f"{counted(details['units'], 'person').replace('persons', 'people')} in the data and as "
        f"many other people, from the holdout, are compared with "
        f"{counted(rows['synthetic'], 'synthetic row')}; they have {rows['source']:,} and "
        f"{rows['holdout']:,} rows."
    )


def _distances(details: Details, measures: Details) -> list[Block]:
    blocks: list[Block] = []
    closest = measures.get("closer")
    if closest is not None:
        value, low, high = (percent(closest[name]) for name in ("value", "low", "high"))
        blocks.append(
            Paragraph(
                f"{value} ({low}–{high}) of synthetic rows are closer to a person in the data than "
                "to any of as many other people. Without memorisation it is about half of them."
            )
        )
    if (histogram := details.get("histogram")) and histogram.get("edges"):
        title = "How far synthetic rows are from real people"
        label = (
            "Distances of synthetic rows to the nearest person in the data and to the nearest of "
            "other people; without memorisation the two outlines are alike"
        )
        spec = charts.distances(histogram)
        blocks.append(Pictures((Chart(title, label, spec, 280),), "half", key="sides"))
    if quantiles := details.get("distances"):
        blocks.append(_quantiles("Distance to the closest record (the nearest person)", quantiles))
    if blocks:
        blocks.insert(0, Heading("Distances"))
    if quantiles := details.get("ratios"):
        text = Paragraph(
            "The distance to the nearest person, divided by that to the second nearest: near 0 a "
            "row clings to one person, near 1 it lies between several."
        )
        table = _quantiles("Nearest over second nearest person", quantiles)
        blocks.append(Expandable("Ratios of distances", (text, table)))
    return blocks


def _quantiles(caption: str, at: Details) -> ReportTable:
    rows = [
        Row((level(share), figure(float(source)), figure(float(other))))
        for share, source, other in zip(at["levels"], at["source"], at["holdout"], strict=True)
    ]
    return ReportTable.of(caption, ("Share of synthetic rows below", *SIDES), rows)


def _copies(copies: Sequence[Details]) -> list[Block]:
    if not copies:
        return []
    rows = [Row((one["what"], *success(one["success"]))) for one in copies]
    caption = "Rows and people that are repeated, with intervals of 95 %"
    return [Heading("Copies"), Lines.of(caption, ("What", *SIDES, BEYOND), rows)]


def success(entry: Details) -> tuple[Any, Any, str]:
    """Return the cells of a success: in the data, others, and what is beyond."""
    return rate(entry["members"]), rate(entry["controls"]), excess(entry["excess"])


def _unique(records: Sequence[Details]) -> list[Block]:
    if not records:
        return []
    rows = [Row((listed(record["columns"], 9), *success(record["success"]))) for record in records]
    intro = Paragraph(
        "Some people are alone with a combination of columns that others may know, so that they "
        "can be found in another register. Does a synthetic row repeat the combination together "
        "with what nobody else knows?"
    )
    caption = "People who are alone with a combination, and repeated with what it gives away"
    return [Heading("Unique people"), intro, Lines.of(caption, ("Columns", *SIDES, BEYOND), rows)]


def _outliers(part: Details) -> list[Block]:
    heading = Heading("Unusual people")
    text = "The people whom nobody else resembles, as far as other people's rows tell. "
    if part.get("auc"):
        return [
            heading,
            Paragraph(
                f"{text}That a synthetic row is closer to one of them who is in the data than to "
                f"one who is not has the chance {auc(part['auc'])}; without memorisation it is 0.5."
            ),
        ]
    if part.get("success"):
        row = Row(("A synthetic row comes close", *success(part["success"])))
        return [
            heading,
            Paragraph(text),
            Lines.of("Unusual people", ("What", *SIDES, BEYOND), [row]),
        ]
    return []


def membership(audit: Details) -> Section | None:
    """Return how well attackers tell who was in the data."""
    details = (audit.get("parts") or {}).get("membership") or {}
    attacks = details.get("attacks") or []
    if not attacks:
        return None
    ceiling = details.get("ceiling") or None
    blocks: list[Block] = [
        Paragraph(
            "The attacker has the synthetic table and the whole record of somebody, knows other "
            "people of the same population, and tries to tell whether that somebody is in the data."
        )
    ]
    if details.get("members") and details.get("strangers"):
        known = details.get("reference")
        also = f"; the attacker knows {known:,} more" if known else ""
        blocks.append(
            Paragraph(
                f"{details['members']:,} people in the data and {details['strangers']:,} other "
                f"people were attacked{also}."
            )
        )
    blocks += _curves(attacks, ceiling)
    blocks.append(_areas(audit, attacks))
    if ceiling is not None:
        blocks.append(Paragraph(_allowed(ceiling)))
        if rates := (audit.get("run") or {}).get("attack_rates"):
            text = f"All events of the run together allow less: {AttackRates(**rates).words}."
            blocks.append(
                Paragraph(f"{text} Both are bounds by the proof; the curves are measured.")
            )
    finding = audit_formatting.outcome(audit, "membership")
    return Section("membership", "Was somebody in the data?", finding, tuple(blocks))


def _curves(attacks: Sequence[Details], ceiling: Details | None) -> list[Block]:
    everyone = [
        one for one in attacks if one["group"] == "everyone" and (one.get("roc") or {}).get("fpr")
    ]
    if not everyone:
        return []
    ones = [
        charts.RocLine(
            one["title"], one["roc"]["fpr"], one["roc"]["tpr"], 1 / max(1, one["strangers"])
        )
        for one in everyone
    ]
    return [Paragraph(READING), roc("Attackers of everyone", ones, (ceiling or {}).get("roc"))]


READING = (
    "How to read the curves: an attacker may name few people and be sure, or many and err often. "
    "To the right, more other people are named wrongly; upwards, more people in the data. Both "
    "scales go in steps of ten, because naming a few people with certainty is the worst leak. On "
    "the dotted diagonal the attacker only guesses."
)

CHANCE = (
    "Far to the left a curve rests on few people and may stray into the shade by chance; only a "
    "test says whether the claim is refuted."
)


def roc(
    title: str,
    ones: Sequence[charts.RocLine],
    ceiling: Details | None,
    table: ReportTable | None = None,
) -> Curves:
    """Return a picture of curves with its key."""
    label = f"{title}: rates of people named in the data and of others, on logarithmic scales"
    spec = charts.curves(ones, ceiling)
    words = CHANCE if ceiling is not None else ""
    picture = Chart(title, label, spec, 400, most=720, figures=words, table=table)
    names = tuple(one.name for one in ones)
    return Curves((picture,), "wide", "", names, ceiling is not None)


def rates_at(attacks: Sequence[Details]) -> list[float]:
    """Return the rates of false alarms at which some attack was judged."""
    return sorted({float(one["fpr"]) for attack in attacks for one in attack.get("rates") or []})


def named_at(attack: Details, alarm: float) -> Any:
    """Return the cell of people named at a rate of false alarms, with its counts."""
    for entry in attack.get("rates") or []:
        if float(entry["fpr"]) == alarm:
            wrong = entry.get("false")
            note = f"; wrongly {wrong['hits']:,} of {wrong['runs']:,}" if wrong else ""
            return rate(entry["tpr"], note)
    return "–"


def _areas(audit: Details, attacks: Sequence[Details]) -> ReportTable:
    """Return a line for each attack on each group."""
    alarms = rates_at(attacks)
    rows = []
    for entry in attacks:
        key = f"membership:{entry['key']}"
        hit = audit_formatting.found(audit, key) and entry["auc"]["low"] > 0.5
        name = f"{entry['title']}: {entry['group_title']}" + (" (beyond chance)" if hit else "")
        people = f"{entry['members']:,} / {entry['strangers']:,}"
        cells = [named_at(entry, alarm) for alarm in alarms]
        rows.append(Row((name, people, auc(entry.get("auc")), *cells), hit))
    named = [f"Named at {level(alarm)} false alarms" for alarm in alarms]
    head = ("Attack: on whom", "In the data / others", "AUC (interval)", *named)
    caption = "Attackers by group, with intervals of 95 %; an AUC of 0.5 is guessing, 1 never wrong"
    return Lines.of(caption, head, rows)


def _allowed(ceiling: Details) -> str:
    rates = ", ".join(
        f"{percent(one['tpr'])} of people in the data at {level(one['fpr'])} false alarms"
        for one in ceiling.get("rates") or []
    )
    area = f"an AUC of at most {estimate({'value': ceiling['auc']}, 3)}"
    return (
        f"The claim of epsilon {audit_formatting.epsilon(ceiling['epsilon'])} allows {area}"
        + (f", and to name at most {rates}" if rates else "")
        + ". What lies above contradicts the claim; what lies below is possible under it."
    )


SPECIAL: dict[str, Callable[[Details], Section | None]] = {
    "memorization": memorization,
    "membership": membership,
    "attribute": attribute,
    "linkability": linkability,
    "singling_out": singling_out,
}


def table_sections(audit: Details, place: str) -> list[Section]:
    """Return the sections of dpsynth's attacks that stand before, or after, the training's."""
    return present(
        SPECIAL[one.key](audit) if one.key in SPECIAL else plain(audit, one.key, one.title)
        for one in ATTACKS
        if one.section == place
    )


def of_plugins(audit: Details) -> list[Section]:
    """Return the sections of other packages' attacks."""
    return present(
        plain(audit, plugin["key"], plugin["title"], f"{audit_formatting.origin(plugin)}.")
        for plugin in audit_formatting.plugins(audit)
    )


def plain(audit: Details, key: str, title: str, origin: str = "") -> Section | None:
    """Return the section of any attack: success, power, controls and measures.

    Args:
        audit: as in ``audit.json``.
        key: of the attack.
        title: of the section.
        origin: where the attack comes from, a sentence; empty for dpsynth's own.
    """
    if key not in (audit.get("parts") or {}):
        return None
    blocks: list[Block] = [Paragraph(origin, "warning")] if origin else []
    blocks += [Paragraph(POPULATION)]
    blocks += _findings(audit, key) + _controls(audit, key) + _measures(audit, key)
    finding = audit_formatting.outcome(audit, key)
    return Section(key.replace("_", "-"), title, finding, tuple(blocks))


def _findings(audit: Details, key: str) -> list[Block]:
    powers = {test["key"]: test["sentence"] for test in audit.get("powers") or []}
    rows = []
    for test in audit_formatting.findings(audit, key):
        could = sentence(powers[test["key"]]) if test["key"] in powers else "Not known."
        word = "succeeded (beyond chance)" if test["found"] else "no success"
        cells = (test["title"], word, sentence(test["sentence"]), could)
        rows.append(Row(cells, bool(test["found"])))
    head = ("Attack", "Result", "What was seen", "Power of the attack")
    return [Lines("Success and power", head, tuple(rows))] if rows else []


def _controls(audit: Details, key: str) -> list[Block]:
    rows = []
    for control in audit.get("controls") or []:
        if str(control["attack"]).partition(":")[0] == key:
            cells = (
                control["title"],
                expected(control),
                "passed" if control["passed"] else "FAILED",
            )
            rows.append(Row((*cells, sentence(control["sentence"])), not control["passed"]))
    head = ("Control", "What is expected", "Result", "What was seen")
    return [Lines("Controls of this attack", head, tuple(rows))] if rows else []


def _measures(audit: Details, key: str) -> list[Block]:
    rows = [
        Row((one["title"], estimate(one), _figure(one), str(one["meaning"])))
        for name, one in (audit.get("measures") or {}).items()
        if str(name).partition(":")[0] == key
    ]
    head = ("Measure", "Value (interval)", "Without leak", "Meaning")
    return [Lines("Measures, with intervals of 95 %", head, tuple(rows))] if rows else []


def _figure(entry: Details) -> str:
    return estimate({"value": entry.get("reference", entry.get("best"))})


_POINTS = 60  # of the curve that a claim allows
_MAX_EPSILON = 500.0  # epsilon, above which a claim allows everything that can be drawn
_BACKGROUND = {
    "run": "rows sampled from the run, so that no real person was read",
    "simulator": "rows of a simulator, so that no real person was read",
    "real": "real rows, in a training of its own that was charged to the ledger",
}


def training_sections(audit: Details) -> list[Section]:
    """Return the sections of the attacks on the training."""
    return present((training(audit), shadows(audit)))


def training(audit: Details) -> Section | None:
    """Return what canaries show about the training."""
    details = (audit.get("parts") or {}).get("training") or {}
    views = details.get("views") or []
    if not views:
        return None
    blocks: list[Block] = [
        Paragraph(
            "The attacker has planted invented patients (canaries), each put into the training or "
            "left out by the toss of a coin, and guesses from what the training gives away which "
            "of them were in: from what a run keeps (black box), or from every noisy step of the "
            "training (white box), which no real attacker sees."
        ),
        Paragraph(_about(details)),
        _bounds(audit, views),
        Paragraph(
            "Both epsilons are lower bounds, with a confidence of 95 %: the first holds for any "
            "training that keeps to (epsilon, delta); the second is sharper and also uses how the "
            "noise is spread (its trade-off curve). A twin is the same training with less noise, "
            "made to leak on purpose, so that it is seen how well the attack sees."
        ),
    ]
    out = max(1, int(details.get("canaries") or 0) - int(details.get("included") or 0))
    ones = [
        charts.RocLine(_name(view), view["roc"]["fpr"], view["roc"]["tpr"], 1 / out)
        for view in views
        if (view.get("roc") or {}).get("fpr")
    ]
    if ones:
        blocks.append(
            roc("Canaries", ones, _training_allowed(details.get("claim"), 1 / out), _rates(views))
        )
    finding = audit_formatting.outcome(audit, "training")
    return Section("training", "Attacks on the training: canaries", finding, tuple(blocks))


def _about(details: Details) -> str:
    """Say how many canaries there were, and among whom."""
    among = _BACKGROUND.get(str(details.get("background")), str(details.get("background")))
    text = f"{details['canaries']:,} canaries, {details['included']:,} of them in, among {among}."
    if details.get("model"):
        text += f" The generator is {formatting.shown(details['model'])}."
    if claim := details.get("claim"):
        text += f" It claims epsilon {audit_formatting.epsilon(claim['epsilon'])}."
    return text


def _name(view: Details) -> str:
    return {"black": "Black box", "white": "White box"}.get(str(view["view"]), str(view["title"]))


def _bounds(audit: Details, views: list[Details]) -> ReportTable:
    rows = []
    for view in views:
        hit = audit_formatting.found(audit, f"training:{view['view']}")
        name = _name(view) + (" (the claim is refuted)" if hit else "")
        curve = _proved(*map(view.get, ("epsilon_fdp", "curve_correct", "curve_guesses")))
        first = _proved(*map(view.get, ("epsilon", "correct", "guesses")))
        rows.append(Row((name, first, curve, auc(view.get("auc")), _twin(view.get("twin"))), hit))
    head = (
        "Attacker",
        "Epsilon proved by (epsilon, delta)",
        "Epsilon proved by the trade-off curve",
        "AUC (interval)",
        "Twin that leaks on purpose",
    )
    return Lines.of("What right guesses about canaries prove", head, rows)


def _proved(value: float | None, correct: int | None, guesses: int | None) -> Any:
    if value is None:
        return "–"
    if correct is None or guesses is None:
        return f"≥ {audit_formatting.at_least(value)}"
    return audit_formatting.below(
        f"≥ {audit_formatting.at_least(value)}", f"{correct:,} of {guesses:,} guesses right"
    )


def _twin(twin: Details | None) -> Any:
    if not twin:
        return "none was made"
    leaked, proved = (
        audit_formatting.epsilon(twin["epsilon"]),
        audit_formatting.at_least(twin["proved"]),
    )
    return audit_formatting.below(
        f"leaks epsilon {leaked}: proved ≥ {proved}", f"AUC {auc(twin.get('auc'))}"
    )


def _rates(views: list[Details]) -> ReportTable | None:
    alarms = rates_at(views)
    if not alarms:
        return None
    rows = [Row((_name(view), *(named_at(view, alarm) for alarm in alarms))) for view in views]
    head = ("Attacker", *(f"Named at {level(alarm)} false alarms" for alarm in alarms))
    return Lines.of("Canaries named, with intervals of 95 %", head, rows)


def _training_allowed(claim: Details | None, minimum: float) -> Details | None:
    """Return the highest curve that a claim allows."""
    if not claim or claim.get("epsilon") is None or claim["epsilon"] > _MAX_EPSILON:
        return None
    import numpy as np

    from dpsynth.eval.attack_stats import ceiling

    grid = np.geomspace(min(0.5, minimum), 1.0, _POINTS)
    maximum = ceiling(float(claim["epsilon"]), float(claim.get("delta") or 0.0), grid)
    return {"fpr": grid.tolist(), "tpr": maximum.tolist()}


def shadows(audit: Details) -> Section | None:
    """Return what attackers learn who train the generator themselves, many times."""
    details = (audit.get("parts") or {}).get("shadows") or {}
    if not details.get("auc"):
        return None
    proved = details.get("epsilon")
    blocks: list[Block] = [
        Paragraph(
            "The attacker has the generator and rows of other people, trains it many times with "
            "and without somebody, learns from the tables what that somebody's presence looks "
            "like, and tells by it which further tables somebody was in."
        ),
        Paragraph(
            f"{counted(details['targets'], 'person').replace('persons', 'people')} and "
            f"{counted(details['models'], 'trained generator')}, in {details['minutes']:,.0f} "
            f"minutes: AUC {auc(details['auc'])}, where 0.5 is guessing and 1 never wrong."
            + (
                ""
                if proved is None
                else f" Epsilon proved: at least {audit_formatting.at_least(proved)}."
            )
        ),
    ]
    if (curve := details.get("roc") or {}).get("fpr"):
        minimum = min((rate for rate in curve["fpr"] if rate > 0), default=1.0)
        line = charts.RocLine("Shadow models", curve["fpr"], curve["tpr"], minimum)
        blocks.append(roc("Shadow models", [line], None))
    finding = audit_formatting.outcome(audit, "shadows")
    return Section("shadows", "Attacks by shadow models", finding, tuple(blocks))
