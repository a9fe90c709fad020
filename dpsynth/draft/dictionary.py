"""Data dictionaries: a row for each column of the table, under headings in four languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dpsynth._util.messages import listed
from dpsynth.draft.entry import CATEGORY, KEY, Entries, Entry
from dpsynth.draft.header import check_names
from dpsynth.draft.names import compact
from dpsynth.draft.sheets import Row, Sheet
from dpsynth.draft.type_words import date_format, kind_of, truth_letters
from dpsynth.draft.units import common_unit
from dpsynth.draft.value_lists import YES, is_missing, read_range, read_values
from dpsynth.errors import InputError

# What a heading means, by its compact form. The first column with a meaning counts, in the order
# of the words: "variable" is a surer sign of a name than "name".
_HEADINGS = {
    "name": "variable variablename variablenname nomdevariable nomdelavariable nomvariable "
    "nombredevariable nombredelavariable nombrevariable fieldname feldname nomduchamp "
    "nombredelcampo columnname spaltenname nomdecolonne column spalte colonne columna field feld "
    "champ campo merkmal attribut attribute variablefieldname name nom nombre itemname item",
    "type": "type typ tipo datatype datentyp variablentyp variabletype feldtyp fieldtype "
    "typededonnees typedevariable tipodedato tipodedatos tipodevariable dtype",
    "label": "label variablelabel variablenlabel fieldlabel bezeichnung titel title libelle "
    "intitule "
    "etiqueta titulo beschreibung description descripcion bedeutung signification significado "
    "erlaeuterung definition",
    "values": "values valuelabels codes coding categories allowedvalues permissiblevalues levels "
    "choices options werte wertelabels auspraegungen auspraegung kodierung codierung kodes "
    "erlaubtewerte zulaessigewerte kategorien valeurs modalites codage valeurspossibles codes "
    "valores codigos categorias codificacion valorespermitidos",
    "range": "range wertebereich bereich plage intervalle rango intervalo validrange limits "
    "grenzen limites",
    "minimum": "min minimum lower lowerlimit minvalue untergrenze minimalwert untererwert "
    "kleinsterwert minimo valeurmin valeurminimale valorminimo borneinferieure limiteinferior "
    "lowerbound limiteinf",
    "maximum": "max maximum upper upperlimit maxvalue obergrenze maximalwert obererwert "
    "groessterwert maximo valeurmax valeurmaximale valormaximo bornesuperieure limitesuperior "
    "upperbound limitesup",
    "unit": "unit units einheit einheiten masseinheit unite unites unidad unidades ucum uom "
    "unitofmeasure unidaddemedida unitedemesure",
    "format": "format datumsformat dateformat formatdate formato formatodefecha formatdedate",
    "missing": "missing missingvalues missingcodes fehlend fehlwerte fehlendewerte fehlwert "
    "valeursmanquantes manquant manquantes valoresperdidos perdidos valoresfaltantes missings",
    "table": "table tablename tabelle tabellenname tabla tablas dataset datensatz datei filename "
    "dateiname nomdelatable nombredelatabla domain domaene",
    "identifying": "identifier identifying identifizierend identifiziert phi pii identifiant "
    "identificador identificante personenbezogen",
}
_MEANINGS = {word: meaning for meaning, text in _HEADINGS.items() for word in text.split()}
_RANKS = {word: rank for text in _HEADINGS.values() for rank, word in enumerate(text.split())}
SEARCHED = 20  # rows above which headings are looked for: titles stand above them
_UNIT = re.compile(r"[\[(]([^\])]{1,20})[\])]\s*$")


def read_dictionary(sheets: list[Sheet], path: Path, *, several: bool = False) -> Entries:
    """Read the first sheet that has a heading for the names of columns.

    Args:
        sheets: of the document.
        path: of the document, for messages.
        several: whether sheets may describe a table each; then the entries name their sheet.

    Raises:
        InputError: no sheet has one, no row follows it, or two rows describe one column.
    """
    described = list(_described(sheets))
    if several and _are_tables(described):
        parts = [
            (sheet, _entries(sheet, start, places, path)) for sheet, start, places in described
        ]
        columns = tuple(
            replace(entry, table=re.sub(r"[^A-Za-z0-9._-]", "-", sheet.title))
            for sheet, entries in parts
            for entry in entries.columns
        )
        return Entries(f"data dictionary {path.name}", columns)
    for sheet, start, places in described:
        return _entries(sheet, start, places, path)
    for sheet in sheets:  # a list of names and nothing else
        if sheet.rows and "name" in (places := headings(sheet.rows[0][1])):
            return _entries(sheet, 0, places, path)
    first_row = [cell for sheet in sheets[:1] for cell in (sheet.rows[0][1] if sheet.rows else ())]
    raise InputError(
        f"{path}: no heading for the names of the columns, such as Variable, Name, Feldname or "
        f"Nom; the first row has: {listed(first_row) or 'nothing'}"
    )


def _described(sheets: list[Sheet]) -> Iterator[tuple[Sheet, int, dict[str, int]]]:
    """Yield the sheets with headings for names and something else, and where these stand."""
    for sheet in sheets:
        for start, (_, row) in enumerate(sheet.rows[:SEARCHED]):
            places = headings(row)
            if "name" in places and len(places) > 1:
                yield sheet, start, places
                break


def _are_tables(described: Sequence[tuple[Sheet, int, dict[str, int]]]) -> bool:
    """Tell whether each sheet describes a table of its own, whose tables share a key.

    A name stands in all of them, each has names that no other one has, and none is there twice. So
    a list of codes beside a dictionary is no table, and a column that names tables comes first.
    """
    if len(described) < 2 or any(
        "table" in places or not sheet.title for sheet, _, places in described
    ):
        return False
    names = []
    for sheet, start, places in described:
        own = [_cell(row, places, "name").casefold() for _, row in sheet.rows[start + 1 :]]
        names.append([name for name in own if name])
    sets = [set(own) for own in names]
    if any(len(own) != len(one) for own, one in zip(names, sets, strict=True)):
        return False
    apart = all(own - set().union(*(other for other in sets if other is not own)) for own in sets)
    return apart and bool(set.intersection(*sets))


def headings(row: Row) -> dict[str, int]:
    """Return which cell of a row stands above which part of a dictionary.

    >>> headings(("Nr", "Feldname", "Bezeichnung", "Einheit"))
    {'name': 1, 'label': 2, 'unit': 3}
    """
    places: dict[str, int] = {}
    for index, cell in enumerate(row):
        word = compact(cell)
        meaning = _MEANINGS.get(word)
        if meaning is None:
            continue
        before = places.get(meaning)
        if before is None or _RANKS[word] < _RANKS[compact(row[before])]:
            places[meaning] = index
    return places


def _entries(sheet: Sheet, start: int, places: dict[str, int], path: Path) -> Entries:
    rows = sheet.rows[start + 1 :]
    named = [(number, row) for number, row in rows if _cell(row, places, "name")]
    if not named:
        raise InputError(f"{path}: no row follows the headings in row {sheet.rows[start][0]}")
    for table in dict.fromkeys(_cell(row, places, "table") for _, row in named):
        own = [(n, row) for n, row in named if _cell(row, places, "table") == table]
        check_names(
            [_cell(row, places, "name") for _, row in own],
            str(path),
            [f"row {number}" for number, _ in own],
        )
    columns = tuple(_entry(row, places, f"row {number}") for number, row in named)
    return Entries(f"data dictionary {path.name}", columns)


def _cell(row: Row, places: dict[str, int], meaning: str) -> str:
    place = places.get(meaning)
    return row[place] if place is not None and place < len(row) else ""


def _entry(row: Row, places: dict[str, int], place: str) -> Entry:
    cells = {meaning: _cell(row, places, meaning) for meaning in _HEADINGS}
    kind = kind_of(cells["type"])
    low, high = cells["minimum"], cells["maximum"]
    values: tuple[tuple[str, str], ...] = ()
    for text in (cells["range"], cells["values"]):
        limits = read_range(text)
        if limits is not None and not (low or high):
            low, high = limits
        elif limits is None:
            values = values or read_values(text)
    if kind in (None, "boolean") and not (values or low or high):
        texts = (cells["type"], cells["label"], cells["name"])
        values = next((found for found in map(truth_letters, texts) if found), ())
    missing = [code for code, label in values if is_missing(label or code) and kind != CATEGORY]
    if kind not in (None, "boolean", CATEGORY, "string", "text") and len(missing) == len(values):
        values = ()  # -9 = unknown, beside numbers
    else:
        missing = []
    missing += [code for code, _ in read_values(cells["missing"])] or _single(cells["missing"])
    unit = cells["unit"]
    if (
        not unit
        and (match := _UNIT.search(cells["label"]))
        and kind in ("integer", "number", "numeric")
        and _may_be_unit(match[1])
    ):
        unit = match[1]
    remark = ""
    if cells["type"] and kind is None:
        remark = f"the dictionary's type is {' '.join(cells['type'].split())[:40]}"
    return Entry(
        name=cells["name"],
        place=place,
        label=" ".join(cells["label"].split()),
        kind=kind,
        values=() if kind == KEY else values,
        minimum=low,
        maximum=high,
        unit="" if unit in ("-", "–", "/", "n/a") else unit,
        format=date_format(cells["format"])
        or date_format(cells["type"])
        or date_format(cells["values"]),
        missing=tuple(dict.fromkeys(missing)),
        identifying=compact(cells["identifying"]) in YES,
        remark=remark,
        table=cells["table"],
    )


def _may_be_unit(text: str) -> bool:
    """Tell whether what a label has in brackets can be a unit, and is no remark.

    >>> [_may_be_unit(one) for one in ("mmol/l", "mm Hg", "10^9 /l", "ver unidad_edad", "see age")]
    [True, True, True, False, False]
    """
    parts = text.split()
    return len(parts) == 1 or common_unit(text) != "" or any(c in "/^%°0123456789" for c in text)


def _single(text: str) -> list[str]:
    return [text] if text and text not in ("-", "–") else []
