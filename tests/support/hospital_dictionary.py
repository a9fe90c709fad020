"""A made-up data dictionary of 40 columns, in the style of a German hospital."""

from __future__ import annotations

from pathlib import Path

TITLE = "Datensatzbeschreibung Innere Medizin;;;;;;"
HEADINGS = "Feldname;Bezeichnung;Datentyp;Einheit;Ausprägungen;Min;Max"
ROWS = """\
PatNr;Patientennummer;Text;;;;
FallNr;Fallnummer;Text;;;;
Nachname;Familienname;Text;;;;
Geb_Datum;Geburtsdatum;Datum (TT.MM.JJJJ);;;;
PLZ;Postleitzahl des Wohnorts;Text;;;;
Alter;Alter bei Aufnahme;Ganzzahl;Jahre;;18;105
Geschlecht;Geschlecht;Auswahl;;m=männlich; w=weiblich; d=divers;;
Groesse_cm;Körpergröße;Zahl;cm;;;
Gewicht_kg;Körpergewicht;Dezimalzahl;kg;;;
BMI;Body-Mass-Index;Dezimalzahl;kg/m²;;;
Raucher;Raucherstatus;Auswahl;;0=nie; 1=früher; 2=aktuell; 9=unbekannt;;
Aufnahmedatum;Datum der Aufnahme;Datum (TT.MM.JJJJ);;;01.01.2019;31.12.2023
Entlassdatum;Datum der Entlassung;Datum (TT.MM.JJJJ);;;;
Verweildauer;Verweildauer;Ganzzahl;Tage;;;
Aufnahmeart;Art der Aufnahme;Auswahl;;N=Notfall; E=Einweisung; V=Verlegung;;
Fachabteilung;Aufnehmende Fachabteilung;Text;;;;
Hauptdiagnose;ICD-10-GM;Text;;;;
Nebendiagnose_1;ICD-10-GM;Text;;;;
RR_sys;Blutdruck systolisch;Ganzzahl;mmHg;;;
RR_dia;Blutdruck diastolisch;Ganzzahl;mmHg;;;
Puls;Herzfrequenz;Ganzzahl;/min;;;
Temp;Körpertemperatur;Dezimalzahl;°C;;;
SpO2;Sauerstoffsättigung;Ganzzahl;%;;;
Hb;Hämoglobin;Dezimalzahl;g/dl;;;
Leukos;Leukozyten;Dezimalzahl;G/l;;;
Thrombos;Thrombozyten;Ganzzahl;/nl;;;
Krea;Kreatinin im Serum;Dezimalzahl;mg/dl;;;
eGFR;Glomeruläre Filtrationsrate;Ganzzahl;ml/min/1,73m²;;;
Na;Natrium;Ganzzahl;mmol/l;;;
K;Kalium;Dezimalzahl;mmol/l;;;
CRP;C-reaktives Protein;Dezimalzahl;mg/l;;;
HbA1c;Langzeitzucker;Dezimalzahl;%;;;
Glukose;Blutzucker;Zahl;mg/dl;;;
INR;INR;Dezimalzahl;;;;
Tropo_T;Troponin T hs;Dezimalzahl;ng/l;;;
GCS;Glasgow Coma Scale;Ganzzahl;;;;
Pflegegrad;Pflegegrad;Ganzzahl;;0-5;;
Diabetes;Diabetes mellitus bekannt;ja/nein;;1=ja; 0=nein;;
Verstorben;Im Krankenhaus verstorben;ja/nein;;;;
Bemerkung;Freitext der Station;Freitext;;;;
"""
NAMES = tuple(line.partition(";")[0] for line in ROWS.splitlines())


def _cells(line: str) -> list[str]:
    """Divide a line; its list of values, the fifth cell, has semicolons itself."""
    cells = line.split(";")
    return [*cells[:4], ";".join(cells[4:-2]), *cells[-2:]]


def table() -> list[list[str]]:
    """Return all rows as cells: a title, the headings, and a row for each column."""
    return [TITLE.split(";"), HEADINGS.split(";"), *map(_cells, ROWS.splitlines())]


def write_csv(path: Path, encoding: str = "utf-8") -> Path:
    """Write it as CSV with semicolons."""
    lines = (";".join(f'"{cell}"' if ";" in cell else cell for cell in row) for row in table())
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


def write_workbook(path: Path) -> Path:
    """Write it as the second sheet of a workbook, behind a cover."""
    import openpyxl

    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.title = "Deckblatt"
    book.active.append(["Stand: März"])
    sheet = book.create_sheet("Felder")
    for row in table():
        sheet.append(row)
    book.save(path)
    return path
