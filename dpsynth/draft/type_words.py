"""Words for types, formats of dates and code systems, in the words of several countries."""

from __future__ import annotations

import re
from typing import Any

from dpsynth._util.field_reader import TODO
from dpsynth.draft.entry import CATEGORY, FREE_TEXT, KEY, NUMERIC, TEXT, TIME, Entry
from dpsynth.draft.names import compact, words
from dpsynth.draft.value_lists import Values, truth_words

_WORDS = {
    "integer": "integer int long short smallint bigint tinyint whole wholenumber ganzzahl "
    "ganzzahlig "
    "ganzezahl entier nombreentier entero numeroentero count anzahl zaehlwert discrete diskret",
    "number": "decimal float double real decimalnumber dezimal dezimalzahl kommazahl gleitkomma "
    "gleitkommazahl reel nombredecimal nombrereel numerodecimal flottant coma flotante",
    NUMERIC: "number numeric num zahl numerisch nombre numerique numero numerico continuous "
    "metrisch "
    "stetig continu continuo continua quantitative quantitativ quantitatif cuantitativo scale "
    "interval ratio messwert",
    "boolean": "boolean bool logical logisch yesno yn janein jn ouinon on sino sn truefalse flag "
    "binary binaer binaire binario dichotomous dichotom dichotome dicotomico wahrheitswert booleen "
    "booleano",
    CATEGORY: "category categorical kategorie kategorial kategoriell nominal ordinal factor "
    "enum code "
    "coded codiert kodiert auswahl auswahlfeld auswahlliste dropdown radio list liste choice "
    "categoriel categorie qualitatif liste categorico categoria cualitativo lista select",
    TEXT: "string text char character varchar nvarchar varchar2 zeichenkette zeichen alphanumeric "
    "alphanumerisch alphanumerique texte chaine chainedecaracteres caractere caracteres texto "
    "cadena "
    "alfanumerico str",
    FREE_TEXT: "freetext freitext memo clob textlibre textelibre textolibre notes longtext",
    "date": "date datum fecha",
    "datetime": "datetime timestamp datumuhrzeit datumzeit datumundzeit datumunduhrzeit "
    "zeitstempel "
    "zeitpunkt dateheure dateetheure horodatage fechahora fechayhora datetime2 datetimetz",
    TIME: "time uhrzeit zeit heure hora timeofday",
    "yearmonth": "yearmonth monthyear jahrmonat monatjahr moisannee anneemois anomes mesano",
    "duration": "duration dauer zeitdauer duree duracion timedelta",
    "year": "year jahr jahreszahl annee ano",
    KEY: "id identifier identifikator key schluessel kennung identifiant cle identificador clave "
    "patientid primarykey",
}
_KINDS = {word: kind for kind, text in _WORDS.items() for word in text.split()}
_DATE = re.compile(r"[tdjmya]+([./ -])[tdjmya]+\1[tdjmya]+", re.IGNORECASE)
# 08:30, 08.30 and 08h30; a lower-case h after a capital one stands between hours and minutes
_CLOCK = re.compile(
    r"(?<![A-Za-z])(?:(?i:h{1,2})(?P<sign>[:.])(?i:m{1,2})(?P<seconds>(?P=sign)(?i:s{1,2}))?"
    r"|(?:H{1,2}|hh)(?P<letter> ?h ?)(?i:m{1,2}))"
)
_ISO = re.compile(r"(YYYY-MM-DD)T(HH)", re.IGNORECASE)
_LETTERS = re.compile(r"(?:.*[(\[]\s*)?([A-Z])\s?/\s?([A-Z])\s*[)\]]?")
_DATE_WORDS = frozenset("date datum fecha dat dates".split())
_DATETIME_WORDS = frozenset(
    "datetime timestamp zeitstempel zeitpunkt horodatage dttm dtm admittime dischtime charttime "
    "storetime starttime stoptime endtime intime outtime edregtime edouttime ordertime".split()
)
_DATE_ENDS = ("date", "datum")  # of one word: startdate, Aufnahmedatum
_DATETIME_ENDS = ("datetime", "timestamp", "zeitpunkt", "zeitstempel")
_BARE = frozenset("start stop begin end beginn ende debut fin inicio".split())  # a whole name
_NO_DATES = frozenset("candidate mandate update uptodate validate".split())


def kind_of(text: str) -> str | None:
    """Return the kind that a type in a dictionary means; None for a word that is not known.

    What stands in brackets is a length or a format.

    >>> kind_of("Ganzzahl"), kind_of("varchar(20)"), kind_of("Datum (TT.MM.JJJJ)"), kind_of("?")
    ('integer', 'text', 'date', None)
    """
    text = _ISO.sub(r"\1 \2", text)
    kind = _KINDS.get(compact(re.split(r"[(\[{]", text)[0])) or _KINDS.get(compact(text))
    if kind == "date" and _CLOCK.search(text):
        return "datetime"
    if kind is None and _DATE.search(text):
        return "datetime" if _CLOCK.search(text) else "date"
    return kind


def date_format(text: str) -> str | None:
    """Return the strptime pattern of a date format in letters, or ``default`` for ISO 8601.

    >>> date_format("Datum (TT.MM.JJJJ)"), date_format("JJ/MM/AAAA"), date_format("YYYY-MM-DD")
    ('%d.%m.%Y', '%d/%m/%Y', 'default')
    >>> date_format("JJ/MM/AAAA HHhMM"), date_format("DD.MM.YYYY HH.MM")
    ('%d/%m/%Y %Hh%M', '%d.%m.%Y %H.%M')
    """
    if re.search(r"%[A-Za-z]", text):
        return text.strip()
    text = _ISO.sub(r"\1 \2", text)
    match = _DATE.search(text)
    if match is None:
        return None
    letters = match[0].upper()
    french = "A" in letters  # jour, mois, année; in German JJ is the year
    parts = [_directive(part, french) for part in letters.split(match[1])]
    if sorted(part[-1].lower() for part in parts) != ["d", "m", "y"]:
        return None
    pattern = match[1].join(parts)
    clock = _CLOCK.search(text[match.end() :])
    if clock is not None:
        sign = clock["sign"] or clock["letter"]
        pattern += f"{_between(text, match, clock)}%H{sign}%M"
        pattern += f"{sign}%S" if clock["seconds"] else ""
    iso = pattern in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
    return "default" if iso else pattern


def truth_letters(text: str) -> Values:
    """Return the two letters of a type or name that says how yes and no are written.

    >>> truth_letters("O/N"), truth_letters("Ventilation (O/N)"), truth_letters("yes/no")
    ((('O', ''), ('N', '')), (('O', ''), ('N', '')), ())
    """
    match = _LETTERS.fullmatch(text.strip())
    values = ((match[1], ""), (match[2], "")) if match is not None else ()
    return values if truth_words(values) is not None else ()


def _between(text: str, day: re.Match[str], clock: re.Match[str]) -> str:
    """Return what stands between a date and its time of day, a blank if it is anything unusual."""
    between = text[day.end() :][: clock.start()]
    return between if between in (" ", "T", "_", "-", "  ", " à ", ", ") else " "


def _directive(letters: str, french: bool) -> str:
    """Return the directive of some equal letters, such as %Y for JJJJ; %? if they mean nothing."""
    if len(set(letters)) != 1:
        return "%?"
    letter = letters[0]
    if letter in "TD" or (letter == "J" and french):
        return "%d"
    if letter == "M":
        return "%m"
    return "%Y" if len(letters) == 4 else "%y"


# National versions that are published as one of dpsynth's code lists, and the others.
_NAMED = {
    ("icd", "10", "gm"): "ICD-10-GM",
    ("icd", "10", "cm"): "ICD-10-CM",
    ("cie", "10", "es"): "ICD-10-CM",  # its Spanish translation
    ("cie", "10", "mc"): "ICD-10-CM",
    ("cie", "9", "mc"): "ICD-9-CM",
    ("icd", "9", "cm"): "ICD-9-CM",
    ("atc",): "ATC",
}
_UNCLEAR = (("icd", "10"), ("cie", "10"), ("cim", "10"), ("icd", "9"), ("cie", "9"), ("cim", "9"))
_SEPARATED = re.compile(
    r"(?:separated|delimited|getrennt|séparés|separados)\s+(?:by|with|durch|mit|par|por|con)\s+"
    r"(?:an?\s+|une?\s+)?['\"«(]?(semicolons?|commas?|pipes?|semikolon|komma|point-virgule|virgule"
    r"|punto\s+y\s+coma|comas?|[;,|/+&])",
    re.IGNORECASE,
)
_ROLLUPS = {"ATC": "level-2"}
_CODED = (None, TEXT, "string", CATEGORY)


def code_system(entry: Entry) -> dict[str, Any] | str | None:
    """Return the code list that a column's label, name or type names; TODO for an unclear one.

    ICD-10 alone, CIE-10 and CIM-10 say no national version, so a person chooses. A column whose
    values the document lists is no such column.

    >>> code_system(Entry("dx", label="Diagnóstico principal CIE-10-ES"))
    {'system': 'ICD-10-CM', 'rollup': 'chapter'}
    >>> code_system(Entry("dp", label="Diagnostic principal (CIM-10)")), code_system(Entry("sex"))
    ('TODO', None)

    Where the document says how several codes of a cell are separated, the draft says so too:

    >>> code_system(Entry("dx", label="ATC codes, separated by ;"))["several"]
    {'separator': ';', 'most': 'TODO'}
    """
    if entry.values or entry.kind not in _CODED:
        return None
    for text in (entry.label, entry.name, entry.remark):
        parts = _split(text)
        for named, system in _NAMED.items():
            if _holds(parts, named):
                codes: dict[str, Any] = {"system": system}
                return codes | {"rollup": _ROLLUPS.get(system, "chapter")} | _several(entry)
        if any(_holds(parts, unclear) for unclear in _UNCLEAR):
            return TODO
    return None


def _several(entry: Entry) -> dict[str, Any]:
    """Return how a label or remark says that several codes of a cell are separated."""
    found = _SEPARATED.search(f"{entry.label} {entry.remark}")
    if found is None:
        return {}
    named = {"comma": ",", "komma": ",", "virgule": ",", "coma": ",", "pipe": "|"}
    separator = found[1] if len(found[1]) == 1 else named.get(found[1].lower().rstrip("s"), ";")
    return {"several": {"separator": separator, "most": TODO}}


def _split(text: str) -> list[str]:
    """Split words, and letters from digits: ICD10GM into ICD, 10 and GM."""
    return [part for word in words(text) for part in re.findall(r"[a-z]+|[0-9]+", word)]


def _holds(parts: list[str], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    return any(tuple(parts[at : at + size]) == wanted for at in range(len(parts) - size + 1))


def moment_of(name: str) -> str | None:
    """Return ``date`` or ``datetime`` where a name says it, else None.

    >>> moment_of("end_date"), moment_of("collected_at"), moment_of("stop"), moment_of("candidate")
    ('date', 'datetime', 'date', None)
    """
    parts = words(name)
    if any(part in _DATETIME_WORDS or part.endswith(_DATETIME_ENDS) for part in parts):
        return "datetime"
    if len(parts) > 1 and parts[-1] == "at":
        return "datetime"
    named = [part for part in parts if part not in _NO_DATES]
    dated = any(part in _DATE_WORDS or part.endswith(_DATE_ENDS) for part in named)
    return "date" if dated or (len(parts) == 1 and parts[0] in _BARE) else None
