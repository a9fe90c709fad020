"""Units of measurement as people write them, matched with UCUM.

A spelling is only compared with the units that a variable can have, because spellings are
ambiguous: ``G/l`` is grams for albumin and 10^9 cells for leukocytes, ``min`` is ``/min`` for a
heart rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpsynth.draft.names import compact

_CONCENTRATION = re.compile(
    r"(?P<amount>[pnumPNUM]?g|[pnumPNUM]?mol|mEq|meq|mval|m?(?:UI|IU|IE|ui|iu|ie)|m?U)/"
    r"(?P<volume>[dmu]?[lL])"
)
_AMOUNTS = {
    **{"ui": "[IU]", "iu": "[IU]", "ie": "[IU]", "mui": "m[IU]", "miu": "m[IU]", "mie": "m[IU]"},
    **{"u": "U", "mu": "mU", "mval": "meq"},
}
_COMMON = {
    **dict.fromkeys(("/ul", "1/ul", "/mm3", "/mm³", "cells/ul", "zellen/ul", "cel/ul"), "/uL"),
    **dict.fromkeys(("/min", "1/min", "bpm", "lat/min", "latidos/min"), "/min"),
    **{"mmhg": "mm[Hg]", "°c": "Cel", "ºc": "Cel", "%": "%", "kg/m2": "kg/m2", "kg/m²": "kg/m2"},
    **{"kg": "kg", "cm": "cm", "mm": "mm"},
    **dict.fromkeys("days day tage tag dagen dag dagar jours días dias giorni dni".split(), "d"),
    **dict.fromkeys("weeks wochen weken veckor semaines semanas settimane tygodnie".split(), "wk"),
    **dict.fromkeys("months monate maanden månader meses mesi miesiące".split(), "mo"),
    **dict.fromkeys("years year jahre jaren jaar år años anos anni lata".split(), "a"),
    **dict.fromkeys("hours stunden uren timmar heures horas godziny".split(), "h"),
}

# Other spellings than UCUM's own, without case and signs; each means the same amount.
_SPELLINGS = {
    "%": "percent pct prozent perc pourcent pourcentage porcentaje vh",
    "/min": "bpm lpm latmin latidosmin latidosporminuto rpm battmin "
    "permin 1min min minute spm schlaegemin schlmin perminute",
    "10*12/L": "1012l 10e12l tl tptl pl miol mioul 106ul 10e6ul milul millul tral",
    "10*9/L": "109l 10e9l gl gptl nl tsdul tsul 103ul 10e3ul kul thousul tsdmm3 103mm3 gigal",
    "Cel": "c gradc celsius grad degc gradcelsius",
    "L": "l liter litre litro",
    "L/min": "lmin lpm",
    "U/L": "ul iul ie ul uil ue",
    "U/mL": "uml kul iuml",
    "[degF]": "f degf fahrenheit",
    "[pH]": "ph",
    "a": "years year yr yrs y jahre jahr j ans an anos ano",
    "cm": "zentimeter centimeter centimetre centimetros",
    "d": "days day tage tag t jours jour j dias dia",
    "fL": "um3",
    "g": "gramm gram grams gr gramme gramos",
    "h": "hours hour hr hrs stunden std stunde heures heure horas hora",
    "kg": "kilogramm kilogram kilograms kilo kilogramme kilogramos kgs",
    "kg/m2": "kgm2 kgqm",
    "m": "meter metre metro metros",
    "m2": "qm sqm",
    "m[IU]/L": "miul mul miel uiuml uuml muil miull mel",
    "mL": "ml milliliter",
    "mL/min/{1.73_m2}": "mlmin mlmin173 mlmin173m2 mlmin173qm",
    "min": "minutes minute minuten minutos",
    "mm/h": "mmh mmhr mmstd mm1h",
    "mm[Hg]": "torr mmhg mmquecksilber",
    "mmol/L": "meql mvall mmol mmoll",
    "mo": "months month monate monat mois meses mes",
    "ms": "msec millisekunden",
    "ng/mL": "ugl mcgl ngml",
    "ng/L": "pgml ngl",
    "pg/mL": "ngl pgml",
    "s": "sec sek sekunden seconds secondes segundos seg",
    "ug/L": "ngml mcgl ugl",
    "ug/dL": "mcgdl ugdl",
    "umol/L": "mcmoll mikromoll umol micromoll",
    "wk": "weeks week wochen woche ssw semaines sa semanas",
    "{INR}": "ratio inr",
    "{PackYears}": "packyears py pa",
    "{count}": "n anzahl count nombre numero",
    "{score}": "points punkte score pts puntos",
    "1": "ratio fraction anteil",
}


def unit_key(text: str) -> str:
    """Write a unit without case and signs, the form in which units are compared.

    >>> unit_key("mg/dL"), unit_key("[µmol/l]"), unit_key("%")
    ('mgdl', 'umoll', 'percent')
    """
    return compact(text.replace("²", "2").replace("³", "3"))


def is_unit(text: str, ucum: str) -> bool:
    """Tell whether a text can mean a unit.

    >>> is_unit("G/l", "g/L"), is_unit("G/l", "10*9/L"), is_unit("mmol/l", "mg/dL")
    (True, True, False)
    """
    key = unit_key(text)
    return bool(key) and (key == unit_key(ucum) or key in _SPELLINGS.get(ucum, "").split())


def common_unit(text: str) -> str:
    """Return the UCUM unit of a spelling that has one meaning in medicine; else an empty text.

    >>> [common_unit(text) for text in ("ng/l", "UI/L", "/µL", "bpm", "mm Hg", "lpm", "points")]
    ['ng/L', '[IU]/L', '/uL', '/min', 'mm[Hg]', '', '']
    """
    key = re.sub(r"\s", "", text).replace("µ", "u").replace("μ", "u")
    if match := _CONCENTRATION.fullmatch(key):
        amount, volume = match["amount"].lower(), match["volume"].lower()
        prefix = {"l": "", "dl": "d", "ml": "m", "ul": "u"}[volume]
        return f"{_AMOUNTS.get(amount, amount)}/{prefix}L"
    return _COMMON.get(key.casefold(), "")


def find_unit(text: str, ucums: Iterable[str]) -> str | None:
    """Return the only one of some UCUM units that a text can mean; None for none or several.

    >>> find_unit("mg/100ml", ["mg/dL", "mmol/L"]) is None, find_unit("mval/l", ["mmol/L"])
    (True, 'mmol/L')
    """
    exact = [ucum for ucum in ucums if unit_key(ucum) == unit_key(text) and unit_key(text)]
    matches = exact or [ucum for ucum in ucums if is_unit(text, ucum)]
    return matches[0] if len(matches) == 1 else None
