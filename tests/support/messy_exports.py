"""Exports as hospitals make them, with made-up contents: titles, sheets, latin-1, commas."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pandas as pd
import pyreadstat

DUTCH = {
    "Patiënten": (
        ["Export EPD, Sint Voorbeeld", None, None, None, None, None],
        [None],
        ["Patiëntnummer", "BSN", "Achternaam", "Geboortedatum", "Geslacht", "Postcode"],
        ["P001", 123456782, "Geheim", "01-02-1950", "V", "1234AB"],
    ),
    "Opnames": (
        ["Patiëntnummer", "Opnamenummer", "Opnamedatum", "Ontslagdatum", "Afdeling", "Arts"],
        ["P001", "O77", "03-04-2021", "09-04-2021", "Longziekten", "dr. Geheim"],
    ),
    "Lab": (
        ["Laboratorium", None, None, None, None],
        ["Patiëntnummer", "Datum", "Bepaling", "Uitslag", "Eenheid"],
        ["P001", "04-04-2021", "CRP", "12,5", "mg/l;"],
    ),
    "Toelichting": (["Vertrouwelijk"],),
    "Blad5": (),
}
GERMAN = {
    "Patienten.csv": "Station 3, Auszug vom 1.3.2024\r\n\r\n"
    "Patientennummer;Nachname;Geb.-Datum;Geschlecht;Größe (cm)\r\nP1;Geheim;1.2.1950;w;171,5\r\n",
    "Fälle.csv": "Patientennummer;Fallnummer;Aufnahmedatum;Entlassungsdatum;Aufn. Arzt\r\n"
    "P1;F9;3.4.2021;9.4.2021;Dr. Geheim\r\n",
    "Labor.txt": "Patientennummer\tZeitpunkt\tAnalyt\tWert\tEinheit\r\n"
    "P1\t4.4.2021\tCRP\t12,5\tmg/l\r\n",
    "LIESMICH.txt": "Nicht weitergeben\r\nGeheim\r\n",
    "Codes.csv": "Code;Text\r\n1;Geheim\r\n",
}
REDCAP = (
    '"Variable / Field Name","Form Name","Field Type","Field Label",'
    '"Choices, Calculations, OR Slider Labels","Text Validation Type OR Show Slider Number",'
    '"Identifier?","Branching Logic (Show field only if...)"\n'
    "record_id,base,text,Record ID,,,,\n"
    "age,base,text,Age,,integer,,[sex] = '2'\n"
    'sex,base,radio,Sex,"1, Male | 2, Female",,,\n'
    "seen,base,text,Seen on,,date_dmy,,\n"
    "crp,base,text,CRP,,number_1dp_comma_decimal,,\n"
    "gp,base,text,General practitioner,,,,\n"
)


def dutch_workbook(path: Path) -> Path:
    """Write an export with a title, merged cells and several sheets, of which two are no tables."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in DUTCH.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book["Patiënten"].merge_cells("A1:F1")
    book.save(path)
    return path


def german_folder(folder: Path) -> Path:
    """Write a folder of a ward, in latin-1, with files that are no tables."""
    folder.mkdir()
    for name, text in GERMAN.items():
        (folder / name).write_bytes(text.encode("latin-1"))
    return folder


def survey(folder: Path) -> tuple[Path, Path]:
    """Write a file of SPSS, and the dictionary of the REDCap project that it was exported from."""
    frame = pd.DataFrame(
        {
            "record_id": ["R1"],
            "age": [4711.0],
            "sex": [1.0],
            "gp": ["Geheim"],
            "base_complete": [2.0],
        }
    )
    pyreadstat.write_sav(frame, str(folder / "data.sav"))
    (folder / "dictionary.csv").write_text(REDCAP)
    return folder / "data.sav", folder / "dictionary.csv"
