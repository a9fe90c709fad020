"""Names of columns in one spelling: no case, accents, separators, or words around the noun."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_UMLAUTS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "oe"}
)
_SIGNS = str.maketrans({"%": " percent ", "µ": "u", "μ": "u", "°": " ", "ł": "l"})
_NUMBERED = re.compile(r"[vt]?[0-9]{1,3}")
# Words before or after the noun that say when, where or how often it was measured.
QUALIFIERS = frozenset(
    "lab labor labs blood blut serum plasma im in at bei der the result ergebnis resultat value "
    "val wert valeur valor first last erste erster erstes letzte letzter letztes premier dernier "
    "primer ultimo min max mean avg median mittel mittelwert minimum maximum baseline bl initial "
    "admission admit discharge visit followup fu day tag jour dia aufnahme aufn entlassung entl "
    "visite entree sortie ingreso alta preop postop pre post adm ed icu its opd worst highest "
    "lowest current aktuell measured gemessen num number anzahl total gesamt score summe".split()
)


def folded(text: str, *, umlauts: bool = True) -> str:
    """Write a text in lower case, without accents, and with ``%`` and ``µ`` in letters.

    Args:
        text: as it stands in a document.
        umlauts: whether ä is written ae, as in German; otherwise it loses its dots.

    >>> folded("Größe"), folded("Größe", umlauts=False), folded("Créatinine [µmol/l]")
    ('groesse', 'grosse', 'creatinine [umol/l]')
    """
    text = unicodedata.normalize("NFC", text).lower().translate(_SIGNS)
    if umlauts:
        text = text.translate(_UMLAUTS)
    text = text.replace("ß", "ss")
    letters = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def words(text: str, *, umlauts: bool = True) -> list[str]:
    """Split a name at everything that is neither a letter nor a digit.

    >>> words("Glukose_mg/dl")
    ['glukose', 'mg', 'dl']
    """
    return [word for word in re.split(r"[^a-z0-9]+", folded(text, umlauts=umlauts)) if word]


def compact(text: str, *, umlauts: bool = True) -> str:
    """Write a name as letters and digits only, the form in which names are compared.

    >>> compact("Sys-BP"), compact("sys_bp")
    ('sysbp', 'sysbp')
    """
    return "".join(words(text, umlauts=umlauts))


def spellings(text: str) -> set[str]:
    """Return both compact forms of a name: with ae for ä, and with a."""
    return {compact(text), compact(text, umlauts=False)}


def cores(parts: list[str]) -> Iterator[list[str]]:
    """Yield a name, then what is left of it without qualifying words at its ends.

    >>> list(cores(["lab", "crp", "max"]))
    [['lab', 'crp', 'max'], ['lab', 'crp'], ['crp']]
    """
    yield parts
    while len(parts) > 1:
        if _qualifies(parts[-1]):
            parts = parts[:-1]
        elif _qualifies(parts[0]):
            parts = parts[1:]
        else:
            return
        yield parts


def _qualifies(word: str) -> bool:
    return word in QUALIFIERS or _NUMBERED.fullmatch(word) is not None
