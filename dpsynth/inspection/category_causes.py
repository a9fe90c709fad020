"""Why a cell is not one of the declared categories, codes or truth words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from dpsynth._util.messages import closest
from dpsynth.inspection import hints
from dpsynth.inspection.findings import Cause
from dpsynth.inspection.known_words import (
    FALSE_WORDS,
    TRUE_WORDS,
    bare_text,
    is_missing_word,
    plain_text,
)
from dpsynth.inspection.suspects import Explanation, Suspects, explained

MIN_TYPO = 5  # letters; shorter codes are too near to each other
MAX_TYPOS = 500  # distinct texts that are compared letter by letter

_ICD10 = re.compile(r"[A-TV-Z][0-9][0-9AB]\.?[0-9A-Z]{0,4}[-+*!]?", re.IGNORECASE)
_ICD9 = re.compile(r"[0-9]{3}\.[0-9]{1,2}|[0-9]{3}|V[0-9]{2}(\.[0-9]{1,2})?", re.IGNORECASE)

Rewrite = Callable[[str], str | None]


def unknown_causes(suspects: Suspects, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain cells that are no declared category or code."""
    levels = suspects.column.categories or ()
    missing = Explanation(
        "missing-word", "hold a word for a missing value", hints.MISSING, _missing, trusted=True
    )
    repaired = Explanation(
        "encoding",
        "were written in UTF-8 and read in another encoding",
        hints.encoding("utf-8"),
        repaired_text,
    )
    if suspects.column.codes is not None:
        return explained(suspects, texts, [missing, *_codes(suspects)])
    labels = _labels(suspects, texts)
    if not suspects.column.kind.is_text:
        return explained(suspects, texts, [*labels, missing])
    return explained(
        suspects, texts, [repaired, *_spellings(levels), *labels, missing, *_typos(levels)]
    )


def _labels(suspects: Suspects, texts: Counter[str]) -> list[Explanation]:
    """Explain texts that are the declared label of a category, in place of its code."""
    categories = suspects.column.categories or ()
    of_label: dict[str, list[str]] = {}
    for category, label in suspects.column.labels.items():
        if category in categories and label.strip():
            of_label.setdefault(label.strip().casefold(), []).append(category)
    known = {label: found[0] for label, found in of_label.items() if len(found) == 1}
    if not known:
        return []
    declared = {category: suspects.column.labels[category].strip() for category in known.values()}
    written = {*declared.values()}
    found = [text for text in texts if text.casefold() in known]
    can_fold = suspects.column.kind.is_text or suspects.column.kind.is_truth
    case = not can_fold or all(text in written for text in found)
    return [
        Explanation(
            "label",
            "hold the label of a category in place of the category",
            hints.labels(declared, case=case),
            lambda text: known.get(text.casefold()),
        )
    ]


def truth_causes(suspects: Suspects, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain cells that are neither true nor false."""
    column = suspects.column
    declared = dict.fromkeys(column.true_values, "true")
    declared |= dict.fromkeys(column.false_values, "false")
    word_of = _by(declared, str.casefold)
    words = {word: "true" for word in TRUE_WORDS} | {word: "false" for word in FALSE_WORDS}
    return explained(
        suspects,
        texts,
        [
            Explanation(
                "case",
                "differ from a declared word only by upper and lower case",
                hints.CASE,
                lambda text: declared.get(word_of(text) or ""),
            ),
            Explanation(
                "truth-words",
                "hold other words for true and false",
                f'add to the column: trueValues: ["WORD"] and falseValues: ["WORD"]; {hints.SHOW}',
                lambda text: words.get(text.casefold()),
                trusted=True,
            ),
            Explanation(
                "missing-word", "hold a word for a missing value", hints.MISSING, _missing,
                trusted=True,
            ),
        ],
    )  # fmt: skip


def repaired_text(text: str) -> str | None:
    """Undo the reading of UTF-8 as another encoding; None if that is not what happened.

    >>> repaired_text("mÃ¤nnlich"), repaired_text("männlich"), repaired_text("male")
    ('männlich', None, None)
    """
    if text.isascii():
        return None
    for encoding in ("cp1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


def _missing(text: str) -> str | None:
    return "" if is_missing_word(text) else None


def _by(levels: Iterable[str], *folds: Callable[[str], str]) -> Rewrite:
    """Look texts up among the levels by a folded form; ambiguous forms are left out."""
    folded: dict[tuple[int, str], str | None] = {}
    for number, fold in enumerate(folds):
        for level in levels:
            form = (number, fold(level))
            folded[form] = None if form in folded or not form[1] else level

    def meant(text: str) -> str | None:
        levels_of_folds = (folded.get((number, fold(text))) for number, fold in enumerate(folds))
        return next((level for level in levels_of_folds if level is not None), None)

    return meant


def _number_form(text: str) -> str:
    """Return a code as a program writes that took it for a number."""
    whole = re.sub(r"\.0+$", "", text)
    return whole.lstrip("0") or "0" if whole.isdigit() else ""


def _spellings(levels: Iterable[str]) -> list[Explanation]:
    """Explain texts that are another way to write a category."""
    return [
        Explanation(
            "case",
            "differ from a category only by upper and lower case",
            hints.CASE,
            _by(levels, str.casefold),
        ),
        Explanation(
            "zeros",
            "are codes that a program took for numbers (007 became 7 or 7.0)",
            f"let the source write the column as text; or {hints.VALUES}; {hints.SHOW}",
            _by(levels, _number_form),
        ),
        Explanation(
            "dots",
            "are declared codes with or without their dot",
            f"{hints.VALUES}; {hints.SHOW}",
            _by(levels, lambda text: text.replace(".", "").casefold()),
        ),
        Explanation(
            "spelling",
            "differ from a category only by accents, blanks or punctuation",
            f"{hints.VALUES}; {hints.SHOW}",
            _by(levels, plain_text, bare_text),
        ),
        Explanation(
            "lost-letters",
            "hold the sign for a letter that was lost in an earlier conversion",
            "export the table again in UTF-8; the letters cannot be restored",
            lambda text: "" if "\ufffd" in text else None,
            trusted=True,
        ),
    ]


def _typos(levels: Iterable[str]) -> list[Explanation]:
    """Explain long words that are nearly a category."""
    long = [level for level in levels if len(level) >= MIN_TYPO and not level.isdigit()]
    tried: set[str] = set()

    def near(text: str) -> str | None:
        if len(text) < MIN_TYPO or any(c.isdigit() for c in text) or len(tried) >= MAX_TYPOS:
            return None
        tried.add(text)
        level = closest(text, long)
        return level if level is not None and _distance_is_one(text, level) else None

    return [
        Explanation(
            "typing",
            "differ from a category by one letter",
            f"{hints.VALUES}; {hints.SHOW}",
            near,
        )
    ]


def _distance_is_one(text: str, level: str) -> bool:
    """Whether one letter was added, left out or changed, or two neighbours swapped.

    >>> [_distance_is_one("surgry", level) for level in ("surgery", "surgical")]
    [True, False]
    """
    one, other = sorted((plain_text(text), plain_text(level)), key=len)
    if len(other) - len(one) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1]
    return one[start + 1 :] == other[start + 1 :] or (
        swapped and one[start + 2 :] == other[start + 2 :]
    )


def _codes(suspects: Suspects) -> list[Explanation]:
    """Explain codes of a published system that are written otherwise, or are of another one."""
    assert suspects.column.codes is not None
    system = suspects.column.codes.system

    def dotted(text: str) -> str | None:
        head = 4 if text[:1].upper() == "E" and system.startswith("ICD-9") else 3
        plain = text.replace(".", "").replace(" ", "")
        return f"{plain[:head]}.{plain[head:]}" if len(plain) > head and plain.isalnum() else None

    other = _ICD10 if system.startswith("ICD-9") else _ICD9
    name = "ICD-10-GM" if system.startswith("ICD-9") else "ICD-9-CM"
    or_else = ", or system: ICD-10-CM" if name == "ICD-10-GM" else ""
    return [
        Explanation(
            "dots",
            f"are codes of {system} without their dot, or with it in another place",
            "let the source write codes with their dot",
            dotted,
        ),
        Explanation(
            "code-system",
            f"look like codes of {name[: name.rindex('-')]}, not of {system}",
            f"set in the column, if the source codes in it: dpsynth: {{codes: {{system: {name}, "
            f"rollup: chapter}}}}{or_else}",
            lambda text: "" if other.fullmatch(text) else None,
            trusted=True,
        ),
    ]
