"""Lists of values, ranges and numbers as people write them into one cell of a dictionary."""

from __future__ import annotations

import re

from dpsynth.draft.names import compact

Values = tuple[tuple[str, str], ...]

_NUMBER = r"[-+]?[0-9]+(?:[.,][0-9]+)?"
_RANGE = re.compile(
    rf"\s*(?:von|from|de|entre)?\s*({_NUMBER})\s*(?:-|–|—|\.\.+|…|bis|to|à|a|hasta|y|;)\s*({_NUMBER})"
    r"\s*[^\d]*\s*",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"\s*(?P<quote>['\"]?)(?P<code>[^=:]*?)(?P=quote)\s*(?:=|:|→|->)\s*(?P<label>.*)"
)
_NEXT_PAIR = re.compile(r"[,/]\s*(?=[^,/=:]{1,20}\s*[=:])")
_PRINTED = re.compile(r"(?:array\(|c\()?[\[({](.*)[\])}]\)?", re.DOTALL)
_ENTRY = re.compile(
    r"(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)(?=[\s,]|$)|(?P<bare>[^\s,'\"\[\]]+)", re.DOTALL
)
_NONE = frozenset(("nan", "none", "null", "na", "<na>", "..."))
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}([.,][0-9]{3})+")
YES = frozenset(
    "yes y ja j oui o si s true wahr vrai verdadero 1 positive positiv x tak t sim waar vero "
    "prawda verdadeiro sant".split()
)
NO = frozenset(
    "no n nein non false falsch faux falso 0 negative negativ nee nie nao nej onwaar falsz "
    "falskt".split()
)
_MISSING = frozenset(
    "missing unknown unbekannt nichtbekannt keineangabe kangabe ka fehlend fehlt fehlenderwert "
    "notdone nichterhoben nichtgemessen nichtbestimmt na nd nr notavailable notapplicable "
    "entfaellt manquant inconnu nonrenseigne nonfait nondisponible desconocido faltante nosabe "
    "noconsta norealizado perdido refused verweigert refuse rechazado nichtzutreffend "
    "nodata onbekend nietbekend nietbepaald ontbreekt geenantwoord nvt sconosciuto nonnoto "
    "noneffettuato mancante nieznany nieznane brakdanych niewykonano desconhecido naorealizado "
    "emfalta naoinformado ignorado okand okant saknas ejutfort".split()
)


def read_values(text: str) -> Values:
    """Read codes with their labels, or plain values; an empty tuple if the text is no list.

    >>> read_values("1=männlich; 2=weiblich")
    (('1', 'männlich'), ('2', 'weiblich'))
    >>> read_values("m, w, d")
    (('m', ''), ('w', ''), ('d', ''))
    >>> read_values("['low' 'N/A - benign' nan]")
    (('low', ''), ('N/A - benign', ''))
    """
    if printed := _PRINTED.fullmatch(text.strip()):
        return _printed(printed[1])
    pieces = _pieces(text.strip())
    pairs = [_PAIR.fullmatch(piece) for piece in pieces]
    if pieces and all(pairs):
        labelled = [(pair["code"].strip(), pair["label"].strip(" \"'")) for pair in pairs if pair]
        return tuple((code, label) for code, label in labelled if code)
    if len(pieces) < 2:
        return ()
    return tuple((piece.strip().strip("\"'"), "") for piece in pieces)


def _printed(text: str) -> Values:
    """Read a list as Python, R or NumPy prints it; nothing if it has anything but values."""
    if _ENTRY.sub("", text).strip(" ,\n\t."):
        return ()
    found = (match["quoted"] or match["bare"] for match in _ENTRY.finditer(text))
    return tuple((one, "") for one in dict.fromkeys(found) if one and one.lower() not in _NONE)


def _pieces(text: str) -> list[str]:
    """Divide a cell at the strongest separator that it has."""
    for separator in ("\n", "|", ";"):
        if separator in text:
            return [piece.strip() for piece in text.split(separator) if piece.strip()]
    if "=" in text or ":" in text:
        return [piece.strip() for piece in _NEXT_PAIR.split(text) if piece.strip()]
    separator = "," if "," in text else "/"
    return [piece.strip() for piece in text.split(separator) if piece.strip()]


def read_range(text: str) -> tuple[str, str] | None:
    """Read a range of numbers, as two texts.

    >>> read_range("0 - 100"), read_range("3,5 bis 20 %"), read_range("m/w")
    (('0', '100'), ('3,5', '20'), None)
    """
    match = _RANGE.fullmatch(text)
    return None if match is None else (match[1], match[2])


def read_number(text: str) -> float | None:
    """Read a number with a decimal point or comma; None if it is none, or can mean two numbers.

    >>> read_number("3,5"), read_number("-2"), read_number("1.000"), read_number("1000")
    (3.5, -2.0, None, 1000.0)
    """
    text = text.strip().replace("\u2212", "-")
    if re.fullmatch(r"[-+]?0[.,][0-9]+", text) is None and _GROUPED.fullmatch(text):
        return None
    return float(text.replace(",", ".")) if re.fullmatch(_NUMBER, text) else None


def is_missing(label: str) -> bool:
    """Tell whether a label says that there is no value.

    >>> is_missing("keine Angabe"), is_missing("none")
    (True, False)
    """
    return compact(label) in _MISSING


def truth_words(values: Values) -> tuple[str, str] | None:
    """Return the codes of yes and of no, if that is all that a list has.

    >>> truth_words((("0", "nein"), ("1", "ja")))
    ('1', '0')
    """
    if len(values) != 2:
        return None
    meanings = [compact(label or code) for code, label in values]
    for yes, no in ((0, 1), (1, 0)):
        if meanings[yes] in YES and meanings[no] in NO:
            return values[yes][0], values[no][0]
    return None
