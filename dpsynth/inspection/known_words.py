"""Words that tables of hospitals use for a missing value or for yes and no; formats of dates.

They are a list from experience with extracts in English, German, French, Spanish and Italian. A
check compares unreadable and unknown cells with it. A fit never reads it: what is missing is what
the schema declares.
"""

from __future__ import annotations

import re
import unicodedata

_WORDS = """
    na nan nil none null missing unknown unk unspecified undefined not_available not_applicable
    not_known not_done not_recorded not_reported not_measured not_stated no_data no_answer refused
    declined pending tbd nd nk nr ns
    ka keine_angabe keine_angaben unbekannt unbek nicht_bekannt fehlt fehlend entfällt entfallen
    leer
    nicht_erhoben nicht_erfasst nicht_durchgeführt nicht_gemessen nicht_bestimmt nicht_beurteilbar
    nicht_verfügbar nicht_zutreffend verweigert abgelehnt ohne_angabe nb nv nz oa
    inconnu inconnue non_renseigné non_renseignée non_disponible non_fait manquant refusé
    desconocido desconocida sin_dato sin_datos no_consta no_disponible no_realizado
    sconosciuto non_disponibile non_noto mancante
"""
_FILLED = re.compile(r"[-–—.?*_/\\#!]+")
TRUE_WORDS = frozenset(
    "yes y ja j true t wahr w waar oui o vrai si s sí sì sim tak vero v x positiv pos "
    "positive".split()
)
FALSE_WORDS = frozenset(
    "no n nein nee nej não nao nie false f falsch onwaar non faux falso negativ neg "
    "negative".split()
)
REST_WORDS = frozenset(
    "other others rest misc miscellaneous unknown sonstige sonstiges andere anderes unbekannt "
    "autre autres inconnu otro otra otros otras altro altri altre".split()
)
MISSING_NUMBERS = frozenset(
    {-1.0, -7.0, -8.0, -9.0, 7777.0, 8888.0, 9999.0, 99999.0, 999999.0}
    | {sign * code for sign in (-1.0, 1.0) for code in (77.0, 88.0, 99.0, 777.0, 888.0, 999.0)}
    | {-7777.0, -8888.0, -9999.0, 99.9, 999.9, 99.99, 999.99, -99.9}
)
MISSING_DATES = ("1800-01-01", "1900-01-01", "1970-01-01", "2099-12-31", "2999-12-31", "9999-12-31")
NO_DATE = re.compile(r"0{1,4}[-./ ]0{1,2}[-./ ]0{1,4}( 0{1,2}:0{2}(:0{2})?)?")
DATE_FORMATS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
    *("%Y.%m.%d", "%Y%m%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%Y", "%d %b %Y"),
    *("%d%b%Y", "%d-%b-%y", "%b %d, %Y", "%d. %B %Y", "%B %d, %Y", "%d %B %Y"),
)
CLOCK_FORMATS = ("%H.%M", "%Hh%M", "%H:%M Uhr", "%H.%M Uhr", "%H%M", "%I:%M %p", "%I:%M:%S %p")
TIME_ENDINGS = (
    *("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p"),
    *(" %Hh%M", " à %Hh%M", " %H h %M", " %H.%M", ", %H:%M"),
)


def plain_text(text: str) -> str:
    """Return a text without case, accents, blanks and punctuation; umlauts as two letters.

    >>> plain_text("  K. A."), plain_text("Männlich") == plain_text("maennlich")
    ('ka', True)
    """
    text = unicodedata.normalize("NFC", text).casefold()
    for letter, pair in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        text = text.replace(letter, pair)
    return bare_text(text)


def bare_text(text: str) -> str:
    """Return a text without case, accents, blanks and punctuation.

    >>> bare_text("Früher "), bare_text("d'accord")
    ('fruher', 'daccord')
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if letter.isalnum())


_MISSING = frozenset(plain_text(word) for word in _WORDS.split())


def is_missing_word(text: str) -> bool:
    """Whether a text is one that people write where they have no value.

    >>> [is_missing_word(text) for text in ("k.A.", "--", "Unbekannt", "N/A", "5", "male")]
    [True, True, True, True, False, False]
    """
    return bool(_FILLED.fullmatch(text)) or plain_text(text) in _MISSING
