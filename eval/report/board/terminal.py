"""The answer as lines for a terminal: the same sentences as on the page."""

from __future__ import annotations

from textwrap import wrap

from dpsynth.eval.report.board.answer import Answer

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
    for verdict, uses in answer.by_verdict.items():
        for place, use in enumerate(uses):
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
