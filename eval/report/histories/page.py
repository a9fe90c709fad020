"""A page of its own for an evaluation of histories, for the office or for anybody.

The internal page holds statistics of real patients and says so. The public one is made from the
pictures of synthetic histories alone, so that no figure in it depends on a real row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from dpsynth._version import __version__
from dpsynth.errors import InputError
from dpsynth.eval.longitudinal import HistoryEvaluation
from dpsynth.eval.report import Section, counted, key_figures, render
from dpsynth.eval.report.histories import sections as internal
from dpsynth.eval.report.histories import shown

Audience = Literal["internal", "public"]
Document = Mapping[str, Any]

UNDONE = "The histories could not be compared; the notes say why."
FORMAT, VERSION = "dpsynth-history-evaluation", 1
WORDS = {
    "fit": ("✓", "Kept: fit for"),
    "with care": ("!", "Kept in part: with care, for"),
    "not fit": ("✗", "Lost: not fit for"),
    "not measured": ("?", "Not measured"),
}
GROUPS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("Leading figures", lambda key: ":" not in key),
    ("By series, column and event", lambda key: ":" in key),
)


def longitudinal_sections(
    evaluation: HistoryEvaluation | Document, audience: Audience = "internal"
) -> list[Section]:
    """Return the sections of a report on histories.

    Args:
        evaluation: as `dpsynth.eval.longitudinal.evaluate_histories` returns it, or its document.
        audience: "internal", or "public": pictures of synthetic patients, and nothing of real ones.

    Raises:
        InputError: it is no such evaluation, or there is no such audience.
    """
    document = _checked(evaluation, audience)
    if audience == "public":
        return shown.sections(document["synthetic"])
    return internal.sections(document)


def longitudinal_page(
    evaluation: HistoryEvaluation | Document, audience: Audience = "internal"
) -> str:
    """Return a report on histories as one page of HTML, which asks no network for anything.

    >>> page = longitudinal_page(evaluate_histories(codec, drawn, train))  # doctest: +SKIP

    Args and raises: as `longitudinal_sections`.
    """
    document = _checked(evaluation, audience)
    undone = document.get("not_done") is not None
    parts = [] if undone else longitudinal_sections(document, audience)
    places = [(one.id, one.title) for one in parts]
    title = str(document["schema"]["title"])
    if audience == "public":
        return render(
            "histories_public.html",
            title=title,
            version=__version__,
            intro=_intro(document["synthetic"]),
            sections=parts,
            list=[("", places)],
        )
    measures = document["measures"]
    uses = [
        (verdict, [one for one in document["uses"] if one["verdict"] == verdict])
        for verdict in WORDS
    ]
    every = [
        (name, [key_figures.show(key, one) for key, one in measures.items() if belongs(key)])
        for name, belongs in GROUPS
    ]
    first = [("uses", "What is kept"), ("overview", "Figures")]
    rest = [*places, ("measures", "All figures"), *[("notes", "Notes")] * bool(document["notes"])]
    return render(
        "histories.html",
        title=title,
        version=__version__,
        verdict=UNDONE if undone else _verdict(uses),
        uses=[(verdict, ones) for verdict, ones in uses if ones],
        words=WORDS,
        cohorts="" if undone else _cohorts(document["patients"]),
        leading=[] if undone else internal.leading(document),
        sections=parts,
        every=[(name, group) for name, group in every if group],
        counts=counted(len(measures), "figure"),
        notes=document["notes"],
        list=[("", first), ("Details", rest)],
    )


def _verdict(uses: Sequence[tuple[str, Sequence[Document]]]) -> str:
    """Say in one sentence how many uses there are of each verdict."""
    words = {"fit": "kept", "with care": "kept in part", "not fit": "lost"}
    words["not measured"] = "not measured"
    whole = sum(len(ones) for _, ones in uses)
    parts = [f"{len(ones)} {words[verdict]}" for verdict, ones in uses if ones]
    return f"Of {whole} uses: {', '.join(parts)}."


def _intro(whole: Document) -> str:
    return (
        f"This page shows {counted(whole['patients'], 'synthetic patient')}. They were drawn from "
        "a model that was fitted with differential privacy, and no row of a real patient was read "
        "to make this page. It does not say how close they are to real patients. The certificate "
        "says what is kept private."
    )


def _cohorts(patients: Document) -> str:
    other = patients["holdout"]
    held = "no holdout" if other is None else f"{counted(other, 'patient')} of the holdout"
    return (
        f"{counted(patients['synthetic'], 'synthetic patient')}, "
        f"{counted(patients['source'], 'real patient')} whom the generator saw, and {held}; "
        f"{patients['compared']:,} of each are compared with those whom the generator saw."
    )


def _checked(evaluation: HistoryEvaluation | Document, audience: str) -> Document:
    if audience not in ("internal", "public"):
        raise InputError(f"there is no audience {audience!r}; write internal or public")
    if isinstance(evaluation, HistoryEvaluation):
        return evaluation.to_dict()
    if evaluation.get("format") != FORMAT or evaluation.get("version") != VERSION:
        raise InputError(
            f"the document is no evaluation of histories: its format is not {FORMAT} {VERSION}; "
            "make it with evaluate_histories"
        )
    return evaluation
