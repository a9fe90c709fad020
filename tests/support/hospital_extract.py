"""A made-up extract of a German hospital, as messy as real ones are, and the truth behind it.

8 000 patients with one to five stays, 42 columns: two dates for each stay, laboratory values such
as ``<5``, decimal commas, three spellings of yes, two units of HbA1c, heights in metres among those
in centimetres, ICD-10-GM codes with and without a dot, several words for a missing value, and an
encoding that is not UTF-8. No real person is behind a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

PATIENTS = 8_000
LONGEST = 90  # days of a stay, by the (made-up) protocol
DELIMITER, ENCODING = ";", "cp1252"
WARDS = ("Innere", "Kardiologie", "Chirurgie", "Notaufnahme", "Gynäkologie", "Intensivstation")
WARD_SHARES = (0.34, 0.18, 0.22, 0.12, 0.09, 0.05)
DIAGNOSES = {
    "I": ("I10.90", "I50.01", "I21.4", "I48.0", "I63.9"),
    "J": ("J44.09", "J18.9", "J45.9"),
    "E": ("E11.90", "E11.74", "E86", "E03.9"),
    "K": ("K80.20", "K35.8", "K57.30", "K29.7"),
    "S": ("S72.00", "S06.0", "S52.50"),
    "C": ("C34.1", "C18.7", "C50.9"),
    "O": ("O80", "O82"),
    "N": ("N39.0", "N17.9"),
}
CHAPTER_SHARES = (0.27, 0.13, 0.12, 0.15, 0.13, 0.09, 0.04, 0.07)
NAMES = ("Müller", "Schmidt", "Schneider", "Fischer", "Weiß", "Jäger", "Groß", "Köhler")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Extract:
    """The table as the hospital would export it, and what is true of it.

    Attributes:
        cells: every cell as text, ``[rows, 42]``.
        truth: one row each, clean: stay in days, HbA1c in percent, height in cm, CRP uncensored,
            chapter of the main diagnosis, and whether the patient smokes.
    """

    cells: pd.DataFrame
    truth: pd.DataFrame

    def write(self, path: Path) -> Path:
        """Write the extract as its hospital does: semicolons, decimal commas, Windows encoding."""
        self.cells.to_csv(path, sep=DELIMITER, index=False, encoding=ENCODING)
        return path


def hospital_extract(patients: int = PATIENTS, *, seed: int = 1) -> Extract:
    """Draw an extract.

    >>> extract = hospital_extract(200, seed=1)
    >>> extract.cells.shape[1], len(extract.truth) == len(extract.cells)
    (42, True)
    """
    rng = np.random.default_rng(seed)
    stays = 1 + rng.binomial(4, 0.11, patients)
    of = np.repeat(np.arange(patients), stays)
    rows = len(of)
    female = (rng.random(patients) < 0.52)[of]
    born = pd.Timestamp("2020-06-30") - pd.to_timedelta(
        (365.25 * np.clip(rng.normal(62, 18, patients), 18, 100)).astype(int), "D"
    )
    admitted = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1461, rows), "D")
    age = ((admitted - born[of]).days // 365.25).astype(int)
    old = (age - 60) / 20
    smokes = (rng.random(patients) < 0.24)[of]
    diabetic = rng.random(rows) < 1 / (1 + np.exp(1.6 - 0.8 * old))
    tense = rng.random(rows) < 1 / (1 + np.exp(0.5 - 0.9 * old))
    chapter = rng.choice(list(DIAGNOSES), rows, p=CHAPTER_SHARES)
    chapter = np.where((chapter == "O") & ~(female & (age < 50)), "I", chapter)
    chapter = np.where(diabetic & (rng.random(rows) < 0.15), "E", chapter)
    ward = rng.choice(WARDS, rows, p=WARD_SHARES)
    ward = np.where(chapter == "O", "Gynäkologie", ward)
    intensive = (ward == "Intensivstation") | (rng.random(rows) < 0.04)
    stay = np.exp(rng.normal(1.05 + 0.12 * old + 0.45 * intensive, 0.75, rows)) - 0.2
    stay = np.clip(np.rint(stay), 0, LONGEST).astype(int)
    ventilated = np.where(intensive & (rng.random(rows) < 0.5), rng.gamma(1.5, 40, rows), 0.0)
    height = np.where(female, rng.normal(165, 7, rows), rng.normal(178, 7, rows)).round()
    weight = ((26 + 2 * diabetic + rng.normal(0, 4.5, rows)) * (height / 100) ** 2).round(1)
    sbp = np.clip(rng.normal(126 + 16 * tense, 17, rows), 70, 235).round()
    dbp = np.clip(0.45 * sbp + rng.normal(20, 8, rows), 35, 130).round()
    hba1c = np.clip(rng.normal(5.5, 0.35, rows) + diabetic * rng.gamma(3, 0.6, rows), 4, 14).round(
        1
    )
    crp = np.exp(rng.normal(1.6 + 1.2 * np.isin(chapter, ["J", "N", "K"]), 1.2, rows)).round(1)
    troponin = np.exp(rng.normal(1.6 + 1.9 * (chapter == "I"), 1.1, rows)).round(1)
    creatinine = np.clip(rng.lognormal(0.02 + 0.12 * old, 0.35, rows), 0.3, 12).round(2)
    died = rng.random(rows) < 1 / (1 + np.exp(5.2 - 1.1 * old - 1.5 * intensive))
    back = rng.random(rows) < 1 / (1 + np.exp(2.2 - 0.4 * old - 0.5 * diabetic - 0.3 * smokes))
    back &= ~died

    def missing(texts: npt.ArrayLike, share: float, *words: str) -> npt.NDArray[np.object_]:
        """Put one of several words in the place of some cells."""
        cells = np.asarray(texts, dtype=object)
        gone = rng.random(rows) < share
        return np.where(gone, rng.choice([*words] or [""], rows), cells)

    def comma(values: Floats, digits: int = 1) -> npt.NDArray[np.object_]:
        return np.array([f"{value:.{digits}f}".replace(".", ",") for value in values], dtype=object)

    def whole(values: npt.ArrayLike) -> npt.NDArray[np.object_]:
        return np.array([str(int(value)) for value in np.asarray(values)], dtype=object)

    def yes(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.object_]:
        spelled = [rng.choice(["ja", "Ja", "JA", "J"], rows, p=[0.7, 0.2, 0.06, 0.04])]
        spelled.append(rng.choice(["nein", "Nein", "N"], rows, p=[0.75, 0.2, 0.05]))
        return np.where(flags, *spelled).astype(object)

    def day(dates: pd.DatetimeIndex) -> npt.NDArray[np.object_]:
        german, iso = dates.strftime("%d.%m.%Y"), dates.strftime("%Y-%m-%d")
        return np.where(rng.random(rows) < 0.06, iso, german).astype(object)

    code = np.array([rng.choice(DIAGNOSES[letter]) for letter in chapter], dtype=object)
    dotless = rng.random(rows) < 0.08
    code = np.where(dotless, [text.replace(".", "") for text in code], code)
    in_mmol = rng.random(rows) < 0.2
    long_term = np.where(in_mmol, whole((hba1c - 2.15) / 0.0915), comma(hba1c))
    metres = rng.random(rows) < 0.015
    low_crp = np.where(crp < 5, "<5", comma(crp))
    heart = np.where(troponin < 3, "<3", np.where(troponin > 500, ">500", comma(troponin)))
    sex = np.where(female, "w", "m").astype(object)
    sex = np.where(rng.random(rows) < 0.05, np.where(female, "W", "M"), sex)
    cells = {
        "Fallnummer": [f"F{number:07d}" for number in rng.permutation(rows)],
        "PatientenID": [f"{patient:06d}" for patient in of],
        "Nachname": rng.choice(NAMES, rows),
        "Geburtsdatum": day(pd.DatetimeIndex(born[of])),
        "Geschlecht": sex,
        "Alter": whole(age),
        "PLZ2": rng.choice(["10", "12", "13", "14", "15", "16"], rows),
        "Versicherung": rng.choice(["GKV", "PKV", "Selbstzahler"], rows, p=[0.87, 0.11, 0.02]),
        "Aufnahmedatum": day(admitted),
        "Aufnahmezeit": [f"{h:02d}:{m:02d}" for h, m in rng.integers(0, [24, 60], (rows, 2))],
        "Entlassdatum": day(admitted + pd.to_timedelta(stay, "D")),
        "Aufnahmeart": rng.choice(["Notfall", "elektiv", "Verlegung"], rows, p=[0.5, 0.42, 0.08]),
        "Station": ward,
        "Hauptdiagnose": code,
        "Nebendiagnosen": ["; ".join(rng.choice(code, 2)) for _ in range(rows)],
        "Größe": missing(np.where(metres, comma(height / 100, 2), whole(height)), 0.06),
        "Gewicht": missing(comma(weight), 0.05, "", "k.A."),
        "RR_sys": missing(whole(sbp), 0.03),
        "RR_dia": missing(whole(dbp), 0.03),
        "Puls": missing(whole(np.clip(rng.normal(80, 14, rows), 35, 190)), 0.03),
        "Temperatur": missing(comma(np.clip(rng.normal(36.9, 0.7, rows), 34, 41.5)), 0.1),
        "SpO2": missing(whole(np.clip(97 - rng.gamma(1.2, 1.5, rows), 70, 100)), 0.1),
        "HbA1c": missing(long_term, 0.3, "", "n.d."),
        "HbA1c_Einheit": np.where(in_mmol, "mmol/mol", "%"),
        "Kreatinin": missing(comma(creatinine, 2), 0.04),
        "CRP": missing(low_crp, 0.08, "", "n.d."),
        "Troponin": missing(heart, 0.45, "", "n.d."),
        "Natrium": missing(whole(np.clip(rng.normal(139, 3.5, rows), 115, 160)), 0.04),
        "Kalium": missing(comma(np.clip(rng.normal(4.2, 0.45, rows), 2.2, 7.5)), 0.04),
        "Hämoglobin": missing(comma(rng.normal(13.6 - 1.2 * female, 1.6, rows).clip(5, 19)), 0.04),
        "Leukozyten": missing(comma(rng.lognormal(2.05, 0.35, rows).clip(0.5, 60)), 0.04),
        "Raucher": missing(yes(smokes), 0.12, "k.A.", "-9", "unbekannt"),
        "Diabetes": yes(diabetic),
        "Hypertonie": yes(tense),
        "Intensiv": whole(intensive),
        "Beatmungsstunden": whole(np.clip(ventilated, 0, 1000)),
        "Barthel": missing(whole(5 * rng.binomial(20, np.clip(0.9 - 0.1 * old, 0.2, 1))), 0.2),
        "Pflegegrad": missing(whole(rng.binomial(5, np.clip(0.1 + 0.1 * old, 0.02, 0.6))), 0.1),
        "Entlassart": np.where(died, "verstorben", rng.choice(["regulär", "verlegt"], rows)),
        "Verstorben": whole(died),
        "Wiederaufnahme_30d": yes(back),
        "Freitext": rng.choice(["Pat. stabil.", "Verlauf o. B.", ""], rows),
    }
    truth = {
        "stay": stay,
        "hba1c": hba1c,
        "height": height,
        "crp": crp,
        "chapter": chapter,
        "smokes": smokes,
    }
    order = rng.permutation(rows)
    table = pd.DataFrame(cells, dtype=object).iloc[order].reset_index(drop=True)
    return Extract(table, pd.DataFrame(truth).iloc[order].reset_index(drop=True))
