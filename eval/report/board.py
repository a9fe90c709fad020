"""The answer for a board: release, release with a warning, or do not release, and why.

It follows from the documents of an evaluation and an audit by rules that the guide gives
(docs/evaluation.md), and is computed from real rows: it is internal, binds nobody, and never
reaches a public file.

- **Do not release**: an attack succeeded; the audit is broken; the run is stamped; the table could
  not be evaluated; it is fit for no use that was measured; more rows than chance explains are rows
  of the source (gate ``copies``).
- **Release with a warning**: another internal gate failed; a column's mean or outer values are far
  off; the table was not attacked; an attack
  could have seen no leak here; nothing says what the table is fit for.
- **Release**: none of these.
- **No answer yet**: only one of evaluation and audit was made, and it speaks against no release.

Below it stand the worst differences, in plain words with a small picture, and what may help: from
what was measured, and from what the run was asked for. None of that was tried on these rows, and
the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from dpsynth.errors import InputError
from dpsynth.eval.attacks import sights, verdict_of
from dpsynth.eval.gates import UNMEASURED
from dpsynth.eval.report import history_facts, sparklines
from dpsynth.eval.report.audit_formatting import other_table
from dpsynth.eval.report.formatting import counted, figure, listed, percent, shown, with_unit
from dpsynth.eval.report.key_figures import KeyFact, first_facts, most_lost, never_seen
from dpsynth.eval.report.uses import (
    CARE,
    COLUMNS,
    CORRELATIONS,
    FIT,
    MEANS_OFF,
    OPEN,
    UNFIT,
    TableUse,
    beyond,
    listing,
    off_columns,
    part,
    single_columns,
    uses,
)
from dpsynth.privacy import AttackRates
from dpsynth.schema import Rule, ordered

Details = Mapping[str, Any]

RELEASE, WARNING, STOP, UNDECIDED = "release", "warning", "stop", "undecided"
HEADLINES = {
    RELEASE: "Release",
    WARNING: "Release with a warning",
    STOP: "Do not release",
    UNDECIDED: "No answer yet",
}
HISTORIES = "dpsynth-history-evaluation"  # the format of an evaluation of whole histories
OUTSIDE, OUTSIDE_PART, RULES = "outside_worst", "outside", "rules"
STOPPING = "copies"  # the internal gate whose failure speaks against any release
NO_TARGET = (
    "No target column is declared (role: target), or none could be used, so usefulness for "
    "prediction was not judged."
)
CAVEAT = (
    "A recommendation for the person who decides. It was computed from real rows, which epsilon "
    "does not cover: keep it in the office. It says no more than was measured here."
)


@dataclass(frozen=True)
class BoardAnswer:
    """What a board reads first.

    Attributes:
        decision: ``release``, ``warning``, ``stop`` or ``undecided``.
        reasons: for it, a sentence each; those against a release first.
        uses: what the table is fit for; none without an evaluation.
        worst: the worst differences.
        helps: what may help.
        histories: whether whole histories were evaluated, which have a page of their own.
        facts: what never happens, what is strong, which way effects go; none of histories.
        lost: the strongest relations that lost most, a sentence each.
        never: pairs of values that no real row has, a sentence each.
        proof: the most that any attack on the run can reach; empty where it is not known.
    """

    decision: str
    reasons: tuple[str, ...]
    uses: tuple[TableUse, ...]
    worst: tuple[Difference, ...]
    helps: tuple[str, ...]
    histories: bool = False
    facts: tuple[KeyFact, ...] = ()
    lost: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    proof: str = ""

    @property
    def headline(self) -> str:
        """The decision in words."""
        return HEADLINES[self.decision]

    @property
    def measured(self) -> bool:
        """Whether there is a use that could be judged."""
        return any(one.verdict != OPEN for one in self.uses)

    @property
    def by_verdict(self) -> dict[str, list[TableUse]]:
        """The uses by verdict, the best first; only verdicts that occur."""
        groups = {name: [u for u in self.uses if u.verdict == name] for name in _VERDICTS}
        return {name: group for name, group in groups.items() if group}

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types; internal."""
        return {
            "decision": self.decision,
            "reasons": list(self.reasons),
            "uses": [one.to_dict() for one in self.uses],
            "worst": [one.to_dict() for one in self.worst],
            "helps": list(self.helps),
            "facts": [one.to_dict() for one in self.facts],
            "lost": list(self.lost),
            "never": list(self.never),
            "proof": self.proof,
        }


_VERDICTS = (FIT, CARE, UNFIT, OPEN)


def answer(evaluation: Details | None, audit: Details | None) -> BoardAnswer:
    """Answer from the documents of an evaluation and an audit, old or new.

    Args:
        evaluation: as ``evaluation.json`` holds it; None if there was none.
        audit: as ``audit.json`` holds it; None if there was none.
    """
    histories = evaluation is not None and evaluation.get("format") == HISTORIES
    if evaluation is not None and histories:
        judged = tuple(TableUse(**use) for use in evaluation["uses"])
    else:
        judged = tuple(uses(evaluation)) if evaluation is not None else ()
    worst, helps = tuple[Difference, ...](), tuple[str, ...]()
    if evaluation is not None and histories:
        worst = tuple(
            Difference("fact", title, (), times, text, Markup(""))
            for title, times, text in history_facts.failures(evaluation)[:SHOWN]
        )
        helps = tuple(history_facts.helps(evaluation))
    elif evaluation is not None:
        worst = tuple(differences(evaluation))
        helps = tuple(remedies(evaluation, judged, worst))
    against, warnings, good = list[str](), list[str](), list[str]()
    if evaluation is not None:
        _judge_evaluation(evaluation, judged, against, warnings, good)
    if audit is not None:
        _judge_audit(audit, against, warnings, good)
    missing = [
        f"{what} was not made (dpsynth {verb})"
        for what, verb, document in (
            ("An evaluation", "evaluate", evaluation),
            ("An audit", "audit", audit),
        )
        if document is None
    ]
    if evaluation is not None and audit is not None and not histories:
        if other_table(audit, evaluation):
            missing.append("Evaluation and audit are of different tables or schemas")
    if against:
        decision = STOP
    elif missing:
        decision = UNDECIDED
    else:
        decision = WARNING if warnings else RELEASE
    reasons = (*against, *(f"{one}." for one in missing), *warnings, *good)
    facts, lost, never = tuple[KeyFact, ...](), tuple[str, ...](), tuple[str, ...]()
    if evaluation is not None and not histories:
        facts = tuple(first_facts(evaluation))
        lost = tuple(one.sentence for one in most_lost(evaluation))
        never = tuple(never_seen(evaluation))
    run = next((one["run"] for one in (evaluation, audit) if one and one.get("run")), None)
    seen = worst, helps, histories, facts, lost, never
    return BoardAnswer(decision, reasons, judged, *seen, proved(run))


def proved(run: Details | None) -> str:
    """Say what no membership attack on a run can exceed, by its certificate; empty without one."""
    if run is None or not run.get("attack_rates"):
        return ""
    rates = AttackRates(**run["attack_rates"])
    return (
        f"By the proof, any attack that tries to tell who is in the data is limited: {rates.words}."
        " This holds for the data with and without one privacy unit with all of its rows, also if "
        "the attacker knows all other rows, and for what the mechanisms of the certificate "
        "released. It follows from the planned noise and is no measurement; the rates of an audit "
        "are what its attacks reached."
    )


def _judge_evaluation(
    evaluation: Details,
    judged: tuple[TableUse, ...],
    against: list[str],
    warnings: list[str],
    good: list[str],
) -> None:
    """Add the reasons that an evaluation gives."""
    if stamps := (evaluation.get("run") or {}).get("stamps"):
        against.append(f"The run may not be released: {listed(stamps, 5)}.")
    if failure := evaluation.get("not_done"):
        reason = shown(failure["reason"]).rstrip(".")
        against.append(f"The table could not be evaluated: {reason}.")
        return
    gates = list(evaluation.get("gates") or [])
    failed = [gate for gate in gates if gate["passed"] is False]
    if off := [column for column in off_columns(evaluation) if column.unfit]:
        more = f" {counted(len(off) - 1, 'more column')} below." if len(off) > 1 else ""
        warnings.append(f"Averages or extremes of {off[0].title} are off. {off[0].sentence}{more}")
    worst = _farthest_out(evaluation)
    if copied := [one for one in failed if one["key"] == STOPPING]:
        against.append(
            f"An internal gate failed that no release should fail: {_gate_titles(copied)}."
        )
    if others := [one for one in failed if one["key"] != STOPPING]:
        many = f"{len(others)} of {counted(len(gates), 'internal gate')}"
        warnings.append(f"{many} failed: {_gate_titles(others, worst)}.")
    unjudged = [one for one in gates if one["passed"] is None]
    if not part(evaluation, "usefulness").get("targets"):
        untold = [one for one in unjudged if one["key"] in UNMEASURED]
        if untold:
            good.append(NO_TARGET)
        unjudged = [one for one in unjudged if one not in untold]
    if unjudged:
        good.append(f"Not judged, as nothing was there to measure: {_gate_titles(unjudged)}.")
    if gates and not failed and any(one["passed"] for one in gates):
        good.insert(0, "Every internal gate that could be judged passed.")
    known = [one for one in judged if one.verdict != OPEN]
    if known and all(one.verdict == UNFIT for one in known):
        against.append("The table is fit for no use that was measured.")
    elif not known:
        warnings.append("Nothing that was measured says what the table is fit for.")
    elif not any(one.verdict == FIT for one in known):
        warnings.append("Nothing that was measured is fit without care.")
    if unfit := [
        f"{one.title[0].lower()}{one.title[1:]}"
        for one in known
        if one.verdict == UNFIT
        and one.key != MEANS_OFF  # a reason of its own, above
        and not all(one.verdict == UNFIT for one in known)
    ]:
        warnings.append(f"Not fit for: {'; '.join(unfit)}.")


def _gate_titles(gates: list[Details], worst: str = "") -> str:
    titles = {str(gate["key"]): str(gate.get("title") or gate["key"]) for gate in gates}
    if worst and OUTSIDE in titles:
        titles[OUTSIDE] += f" ({worst})"
    if titles.get(RULES) == RULES:  # an earlier document of a schema without rules
        titles[RULES] = "rows that break a rule (the schema declares no rule)"
    return _titles(list(titles.values()), 7)


def _farthest_out(evaluation: Details) -> str:
    """Name the column with most values beyond the source's range, and their share."""
    columns = part(evaluation, "fidelity").get(OUTSIDE_PART) or []
    known = [column for column in columns if column.get("synthetic") is not None]
    if not known:
        return ""
    worst = max(known, key=lambda one: float(one["synthetic"]))
    return f"{worst.get('title') or worst['column']}: {percent(float(worst['synthetic']))}"


def _judge_audit(audit: Details, against: list[str], warnings: list[str], good: list[str]) -> None:
    """Add the reasons that an audit gives."""
    if verdict_of(audit) == "failed":
        against.append("The audit is broken and proves nothing: repair or repeat it first.")
        return
    findings = audit.get("findings") or []
    hits = [str(finding.get("title") or finding["key"]) for finding in findings if finding["found"]]
    if hits:
        against.insert(0, f"{counted(len(hits), 'attack')} succeeded: {_titles(hits)}.")
    if failure := audit.get("not_done"):
        reason = shown(failure["reason"]).rstrip(".")
        warnings.append(f"The table could not be attacked: {reason}.")
    elif audit.get("tables") is None:
        warnings.append("The table was not attacked, only the training was.")
    blind = [sight.title for sight in sights(audit) if sight.blind]
    if blind:
        warnings.append(
            f"{len(blind)} of {counted(len(findings), 'attack')} could have seen no leak here: "
            f"{_titles(blind)}."
        )
    if findings and not hits:
        able, many = len(findings) - len(blind), counted(len(findings), "attack")
        text = f"None of {many} succeeded"
        good.append(
            f"{text}; {able} could have seen a leak of the size that the page states."
            if able
            else f"{text}, which says nothing: none could have seen a leak here."
        )
    if not findings:
        warnings.append("No attack was made.")


def _titles(names: list[str], maximum: int = 4) -> str:
    """Join names that may hold commas."""
    texts = [shown(one) for one in names]
    more = [f"and {len(texts) - maximum} more"] * (len(texts) > maximum)
    return "; ".join([*texts[:maximum], *more])


WIDTH, INDENT = 100, 13


def lines_of(answer: BoardAnswer) -> list[str]:
    """Lay out the decision, reasons, facts, uses, the worst differences and what may help."""
    lines = ["INTERNAL: computed from real rows; not for publication"]
    lines += _entry("answer", answer.headline.upper())
    for reason in answer.reasons:
        lines += _entry("", reason, "- ")
    for place, fact in enumerate(answer.facts):
        lines += _entry("facts" if place == 0 else "", fact.sentence, "- ")
    for place, text in enumerate(answer.never):
        lines += _entry("never real" if place == 0 else "", text, "- ")
    for place, text in enumerate(answer.lost):
        lines += _entry("weaker" if place == 0 else "", text, "- ")
    for verdict, judged in answer.by_verdict.items():
        for place, use in enumerate(judged):
            name = verdict if place == 0 else ""
            lines += _entry(name, f"{use.title}: {_short(use.sentence)}", "- ")
    for place, one in enumerate(answer.worst):
        lines += _entry("differs" if place == 0 else "", f"{one.title}: {one.sentence}", "- ")
    for place, text in enumerate(answer.helps):
        lines += _entry("may help" if place == 0 else "", text, "- ")
    return lines


def _short(sentence: str) -> str:
    """Keep a line readable in a terminal; the page has the rest."""
    return sentence if len(sentence) <= 400 else f"{sentence[:399].rstrip()}…"


def _entry(name: str, text: str, mark: str = "") -> list[str]:
    """Write a text beside its name, wrapped."""
    first = f"{name:<{INDENT}} "
    width = WIDTH - len(first) - len(mark)
    rows = wrap(text, width, break_on_hyphens=False) or [""]
    rest = " " * (len(first) + len(mark))
    return [f"{first}{mark}{rows[0]}".rstrip(), *(f"{rest}{row}" for row in rows[1:])]


SHOWN, MEANS_SHOWN = 5, 3
TAIL, MISSING, RULE = 0.05, 0.05, 0.01  # differences of shares that are as bad as a column's limit


@dataclass(frozen=True)
class Difference:
    """One way in which the table differs from the real rows.

    Attributes:
        kind: ``mean``, ``column``, ``end``, ``missing``, ``rule`` or ``relation``; of histories
            ``fact``.
        title: the column or columns, or the rule.
        columns: names of the columns.
        score: times its limit; from 1 it makes the table unfit for analyses of these columns. Of a
            fact, times the figure of a bootstrap.
        sentence: what differs, with both figures.
        picture: the same, small.
    """

    kind: str
    title: str
    columns: tuple[str, ...]
    score: float
    sentence: str
    picture: Markup

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types, without its picture."""
        return {
            "kind": self.kind,
            "title": self.title,
            "columns": list(self.columns),
            "score": round(self.score, 3),
            "sentence": self.sentence,
        }


def differences(document: Details, count: int = SHOWN) -> list[Difference]:
    """Return the worst differences, the worst first; only what is worse than real people."""
    known = [*_columns(document), *_ends(document), *_missing(document), *_rules(document)]
    known += _relations(document)
    first = sorted(_off_means(document), key=lambda one: -one.score)
    chosen: list[Difference] = []
    shown_columns: set[str] = set()
    for one in [*first[:MEANS_SHOWN], *sorted(known, key=lambda one: -one.score)]:
        if len(chosen) < count and one.score > 0 and not shown_columns & set(one.columns):
            chosen.append(one)
            shown_columns |= set(one.columns)
    return chosen


def _off_means(document: Details) -> Iterator[Difference]:
    columns = {str(c["name"]): c for c in single_columns(document)}
    for one in off_columns(document):
        whole = columns.get(one.name) or {}
        real, synthetic = whole.get("source"), whole.get("synthetic")
        picture = Markup("")
        if real and synthetic and len(real) == len(synthetic):
            picture = sparklines.outline(real, synthetic, joined=True)
        if one.unfit:
            yield Difference("mean", one.title, (one.name,), one.score, one.sentence, picture)


def _columns(document: Details) -> Iterator[Difference]:
    for column in single_columns(document):
        source, synthetic = column.get("source"), column.get("synthetic")
        away = beyond(column["tvd"]) if column.get("tvd") else None
        if away is None or not source or not synthetic or len(source) != len(synthetic):
            continue
        label, real, made = _span(column)
        where = f"are “{label}”"
        if column.get("kind") == "numeric":
            spans = " to " in label and not label.startswith("up to ")
            where = f"lie from {label}" if spans else f"lie {label}"
            if not spans and not label.startswith(("from ", "up to ")):
                where = f"are {label}"
        sentence = f"{percent(made)} of the synthetic values {where}; {percent(real)} of the real."
        yield Difference(
            "column",
            _title(column),
            (str(column["name"]),),
            away / COLUMNS[1],
            sentence,
            sparklines.outline(source, synthetic, joined=column.get("kind") == "numeric"),
        )


def _span(column: Details) -> tuple[str, float, float]:
    """Return the bins side by side (or the one category) that hold most of what is too much.

    >>> bins = {"kind": "numeric", "bins": ["1 to 2", "3 to 4", "5 to 6"]}
    >>> _span(bins | {"source": [0.6, 0.2, 0.2], "synthetic": [0.2, 0.4, 0.4]})
    ('3 to 6', 0.4, 0.8)
    """
    source, synthetic = column["source"], column["synthetic"]
    labels = [str(one) for one in column["bins"]]
    excess = [drawn - real for real, drawn in zip(source, synthetic, strict=True)]
    if column.get("kind") != "numeric":
        place = max(range(len(excess)), key=lambda k: abs(excess[k]))
        return shown(labels[place]), float(source[place]), float(synthetic[place])
    best, first, last, begin, total = excess[0], 0, 0, 0, 0.0
    for place, value in enumerate(excess):
        if total <= 0:
            begin, total = place, 0.0
        total += value
        if total > best:
            best, first, last = total, begin, place
    label = labels[first] if first == last else _joined(labels[first], labels[last])
    inside = slice(first, last + 1)
    return shown(label), round(sum(source[inside]), 9), round(sum(synthetic[inside]), 9)


def _joined(first: str, last: str) -> str:
    """Name the bins from one to another.

    >>> _joined("1 to 2", "5 to 6"), _joined("up to 9", "12"), _joined("3 to 4", "from 90")
    ('1 to 6', 'up to 12', 'from 3')
    """
    low = "" if first.startswith("up to ") else first.split(" to ")[0]
    high = "" if last.startswith("from ") else last.split(" to ")[-1]
    if low and high:
        return f"{low} to {high}"
    return f"from {low}" if low else f"up to {high}"


def _ends(document: Details) -> Iterator[Difference]:
    titles = {str(c["name"]): c for c in part(document, "fidelity").get("columns") or []}
    for tail in part(document, "fidelity").get("tails") or []:
        source, synthetic = tail.get("source"), tail.get("synthetic")
        if source is None or synthetic is None:
            continue
        holdout = tail.get("holdout")
        away = abs(synthetic - source) - (abs(holdout - source) if holdout is not None else 0.0)
        side = "below its first" if tail.get("tail") == "low" else "above its 99th"
        column = str(tail["column"])
        sentence = (
            f"{percent(synthetic)} of the synthetic values are {side} real percentile; "
            f"{percent(source)} of the real ones."
        )
        whole = titles.get(column) or {}
        real, made = whole.get("source"), whole.get("synthetic")
        if real and made and len(real) == len(made):
            picture = sparklines.outline(real, made, joined=True)
        else:
            top = 1.2 * max(source, synthetic, 0.01)
            picture = sparklines.shares(source, synthetic, holdout, maximum=top)
        title = f"{_title(titles.get(column) or {'name': column})}: its end"
        yield Difference("end", title, (column,), away / TAIL, sentence, picture)


def _missing(document: Details) -> Iterator[Difference]:
    for column in part(document, "fidelity").get("columns") or []:
        shares = column.get("missing") or {}
        source, synthetic, holdout = (shares.get(n) for n in ("source", "synthetic", "holdout"))
        if source is None or synthetic is None:
            continue
        away = abs(synthetic - source) - (abs(holdout - source) if holdout is not None else 0.0)
        sentence = (
            f"It is missing in {percent(synthetic)} of the synthetic rows; in {percent(source)} of "
            "the real ones."
        )
        maximum = 1.2 * max(source, synthetic, 0.01)
        picture = sparklines.shares(source, synthetic, holdout, maximum=maximum)
        title, name = f"{_title(column)}: missing", str(column["name"])
        yield Difference("missing", title, (name,), away / MISSING, sentence, picture)


def _rules(document: Details) -> Iterator[Difference]:
    for rule in listing(document, "rules"):
        source, synthetic = rule.get("source") or 0.0, rule.get("synthetic") or 0.0
        text = shown(rule.get("plain") or rule.get("text") or rule.get("rule") or "")
        sentence = f"{percent(synthetic)} of the synthetic rows break the rule; "
        sentence += f"{percent(source)} of the real ones."
        picture = sparklines.shares(
            source, synthetic, rule.get("holdout"), maximum=1.2 * max(source, synthetic, 0.01)
        )
        away = (synthetic - source) / RULE
        yield Difference("rule", f"Rule: {text}", (), away, sentence, picture)


def _relations(document: Details) -> Iterator[Difference]:
    correlation = (part(document, "fidelity").get("pairs") or {}).get("correlation") or {}
    names: Sequence[Any] = correlation.get("names") or []
    titles = {str(c["name"]): _title(c) for c in part(document, "fidelity").get("columns") or []}
    real, made = correlation.get("source") or [], correlation.get("synthetic") or []
    if len(real) != len(names) or len(made) != len(names):
        return
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            source, synthetic = real[i][j], made[i][j]
            if source is None or synthetic is None:
                continue
            away = abs(synthetic - source) - CORRELATIONS[0]
            both = [titles.get(str(one)) or shown(one) for one in (second, first)]
            sentence = (
                f"Their correlation is {figure(float(synthetic), 2)} in the synthetic table; "
                f"{figure(float(source), 2)} in the real rows."
            )
            yield Difference(
                "relation",
                f"{both[0]} with {both[1]}",
                (str(second), str(first)),
                away / CORRELATIONS[1],
                sentence,
                sparklines.shares(source, synthetic, minimum=-1.0, maximum=1.0),
            )


def _title(column: Details) -> str:
    return with_unit(str(column.get("title") or column["name"]), column.get("unit"))


MUCH_EPSILON = 10.0  # epsilon from which more promises almost nothing
UNSEEN_PAIRS = 3  # of columns whose combinations no real row has
MANY_COLUMNS = 20  # columns among which a budget is thin
FEW_PEOPLE = 5_000  # in the source
UNITS = {"date": "d", "datetime": "h"}  # of a gap to a column of the type
CALENDAR_PARTS = ("weekday", "month", "hour")
WITHOUT_RELATIONS = "independent"  # the model that keeps none


def remedies(document: Details, uses: Sequence[TableUse], worst: Sequence[Difference]) -> list[str]:
    """List what may help where the table is not fit, the likeliest first; a sentence each."""
    weak = {one.key for one in uses if one.verdict in (CARE, UNFIT)}
    candidates = _candidates(document)
    if not weak:
        return candidates
    columns = part(document, "fidelity").get("columns") or []
    kinds = {str(column["name"]): column for column in columns}
    ways = candidates
    run = document.get("run") or {}
    if run.get("model") == WITHOUT_RELATIONS and weak & {"pairs", "prediction", "effects"}:
        ways.append("Another model: independent draws each column alone and keeps no relation.")
    dates = {str(one["name"]): one["type"] for one in columns if one.get("type") in UNITS}
    if len(dates) > 1:
        ways.append(_interval(document, dates))
    if len(columns) > MANY_COLUMNS:
        ways.append(
            f"Fewer columns: {len(columns)} share one budget; leave out those that no analysis "
            "needs (role drop)."
        )
    wide = [
        shown(name)
        for one in worst
        if one.kind in ("column", "end")
        for name in one.columns
        if (kinds.get(name) or {}).get("kind") == "numeric"
    ]
    if wide:
        ways.append(
            f"Wider bins or narrower public bounds for {listed(wide, 3)} (step, minimum and "
            "maximum in the schema)."
        )
    if "rare" in weak:
        ways.append("Rare categories together: a roll-up of codes, or fewer categories.")
    epsilon, people = run.get("epsilon"), (document.get("tables") or {}).get("source") or {}
    if epsilon is not None and epsilon < MUCH_EPSILON:
        ways.append(
            f"More epsilon than {float(epsilon):g}: less noise, and a weaker guarantee for every "
            "patient."
        )
    units = people.get("units") or people.get("rows")
    if units is not None and units < FEW_PEOPLE:
        ways.append(f"More patients than {units:,}: the same noise weighs less among more of them.")
    return ways


def _candidates(document: Details) -> list[str]:
    """Name combinations that no real row has; whether they are impossible, a person decides."""
    shares = [
        f"{percent(one['share'])} of the synthetic rows ({shown(one['columns'][0])} with "
        f"{shown(one['columns'][1])}), mostly {shown(one['columns'][0])} {shown(one['bins'][0])} "
        f"and {shown(one['columns'][1])} {shown(one['bins'][1])}"
        for one in _several_columns(part(document, "fidelity").get("unseen") or [])[:UNSEEN_PAIRS]
    ]
    if not shares:
        return []
    return [
        "A rule (rules: in the schema), if these combinations are impossible; no real row has "
        f"them, though chance alone would give many: {'; '.join(shares)}."
    ]


def _several_columns(unseen: Sequence[Details]) -> list[Details]:
    """Return those whose columns a rule can name: no place of a set, and no part of a date.

    >>> _several_columns([{"columns": ["ward", "codes: 2"]}, {"columns": ["ward", "sex"]}])
    [{'columns': ['ward', 'sex']}]
    """

    def is_part(name: str) -> bool:
        base, _, last = name.rpartition(": ")
        number = last.removeprefix("code ")
        return bool(base) and (number.isdigit() or last in CALENDAR_PARTS)

    return [one for one in unseen if not any(is_part(str(name)) for name in one["columns"])]


def _interval(document: Details, dates: Mapping[str, str]) -> str:
    """Name the two dates, and the keys that make an interval of the later one.

    A rule tells which is the later one; without a rule it is the one that the schema names later.
    """
    pairs = [pair for rule in listing(document, "rules") for pair in _compared_columns(rule)]
    known = next((pair for pair in pairs if set(pair) <= set(dates)), None)
    first, last = known or list(dates)[:2]
    keys = f"after: {shown(first)}, longest: 90, unit: {UNITS[dates[last]]}, bounds_basis: ..."
    says = "" if known else f", if it never lies before {shown(first)}"
    return (
        f"An interval for two dates: declare {shown(last)} by its distance after {shown(first)}"
        f"{says}. In the schema, remove minimum and maximum of {shown(last)} and write "
        f"dpsynth: {{{keys}}}; put the longest time that your protocol allows in place of 90."
    )


def _compared_columns(rule: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs of columns that a rule of a document orders; none if it cannot be read."""
    try:
        return list(ordered(Rule.parse(str(rule.get("rule") or rule.get("text") or "")).tree))
    except InputError:
        return []
