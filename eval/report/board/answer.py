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
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from dpsynth.eval.attacks import sights, verdict_of
from dpsynth.eval.gates import UNMEASURED
from dpsynth.eval.report.board.differences import Difference, differences
from dpsynth.eval.report.board.figures import part
from dpsynth.eval.report.board.means import off_columns
from dpsynth.eval.report.board.remedies import remedies
from dpsynth.eval.report.board.uses import CARE, FIT, MEANS_OFF, OPEN, UNFIT, Use, uses
from dpsynth.eval.report.formatting import counted, listed, percent, shown
from dpsynth.eval.report.key_figures import Fact, first_facts, most_lost, never_seen
from dpsynth.eval.report.sections.audit import other_table

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
class Answer:
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
    """

    decision: str
    reasons: tuple[str, ...]
    uses: tuple[Use, ...]
    worst: tuple[Difference, ...]
    helps: tuple[str, ...]
    histories: bool = False
    facts: tuple[Fact, ...] = ()
    lost: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The decision in words."""
        return HEADLINES[self.decision]

    @property
    def measured(self) -> bool:
        """Whether there is a use that could be judged."""
        return any(one.verdict != OPEN for one in self.uses)

    @property
    def by_verdict(self) -> dict[str, list[Use]]:
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
        }


_VERDICTS = (FIT, CARE, UNFIT, OPEN)


def answer(evaluation: Details | None, audit: Details | None) -> Answer:
    """Answer from the documents of an evaluation and an audit, old or new.

    Args:
        evaluation: as ``evaluation.json`` holds it; None if there was none.
        audit: as ``audit.json`` holds it; None if there was none.
    """
    histories = evaluation is not None and evaluation.get("format") == HISTORIES
    if evaluation is not None and histories:
        judged = tuple(Use(**use) for use in evaluation["uses"])
    else:
        judged = tuple(uses(evaluation)) if evaluation is not None else ()
    worst = tuple(differences(evaluation)) if evaluation is not None else ()
    helps = tuple(remedies(evaluation, judged, worst)) if evaluation is not None else ()
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
    facts, lost, never = tuple[Fact, ...](), tuple[str, ...](), tuple[str, ...]()
    if evaluation is not None and not histories:
        facts = tuple(first_facts(evaluation))
        lost = tuple(one.sentence for one in most_lost(evaluation))
        never = tuple(never_seen(evaluation))
    return Answer(decision, reasons, judged, worst, helps, histories, facts, lost, never)


def _judge_evaluation(
    evaluation: Details,
    judged: tuple[Use, ...],
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
        against.append(f"An internal gate failed that no release should fail: {_named(copied)}.")
    if others := [one for one in failed if one["key"] != STOPPING]:
        many = f"{len(others)} of {counted(len(gates), 'internal gate')}"
        warnings.append(f"{many} failed: {_named(others, worst)}.")
    unjudged = [one for one in gates if one["passed"] is None]
    if not part(evaluation, "usefulness").get("targets"):
        untold = [one for one in unjudged if one["key"] in UNMEASURED]
        if untold:
            good.append(NO_TARGET)
        unjudged = [one for one in unjudged if one not in untold]
    if unjudged:
        good.append(f"Not judged, as nothing was there to measure: {_named(unjudged)}.")
    if gates and not failed and any(one["passed"] for one in gates):
        good.insert(0, "Every internal gate that could be judged passed.")
    known = [one for one in judged if one.verdict != OPEN]
    if known and all(one.verdict == UNFIT for one in known):
        against.append("The table is fit for no use that was measured.")
    elif not known:
        warnings.append("Nothing that was measured says what the table is fit for.")
    elif unfit := [
        f"{one.title[0].lower()}{one.title[1:]}"
        for one in known
        if one.verdict == UNFIT and one.key != MEANS_OFF  # a reason of its own, above
    ]:
        warnings.append(f"Not fit for: {'; '.join(unfit)}.")


def _named(gates: list[Details], worst: str = "") -> str:
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


def lines_of(answer: Answer) -> list[str]:
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
