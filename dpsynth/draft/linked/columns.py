"""Which column of each table is its key, its day, its test: by name alone.

Everything here is a proposal. A person who knows the tables confirms it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsynth.draft.clinical import KEY, find
from dpsynth.draft.entry import Entry
from dpsynth.draft.intervals import is_end
from dpsynth.draft.names import compact, words
from dpsynth.draft.type_words import moment_of
from dpsynth.errors import InputError

_PATIENTS = frozenset(
    "patient patients patienten patientes pacientes paciente person persons persona personas "
    "personne personnes personen subject subjects sujet sujets probanden baseline demographics "
    "demographie demografia demog dm stammdaten cohort kohorte cohorte cohorte".split()
)
_NUMBERS = frozenset("id nr no number nummer key numero num".split())
_DAYS = frozenset(
    "day days tag tage jour jours dia dias studyday studientag relday reldays dayssincestart "
    "daysinstudy visitday".split()
)
_TESTS = frozenset(
    "test testname testcode code item itemid parameter parametername analyte analyt measure "
    "measurement variable loinc labtest untersuchung messgroesse examen analyse prueba".split()
)
_VALUES = frozenset(
    "value values valuenum result resultvalue wert messwert ergebnis valeur resultat valor "
    "resultado".split()
)
_UNITS = frozenset(
    "unit units uom valueuom einheit einheiten masseinheit unite unites unidad unidades".split()
)
_EVENTS = frozenset(
    "event events condition conditions diagnosis diagnose diagnoses outcome endpoint ereignis "
    "endpunkt evenement evenements evento eventos diagnostic diagnostico".split()
)
DAYS, DATE = "integer", "date"


@dataclass(frozen=True)
class Placed:
    """The columns of one table that have a place of their own.

    Attributes:
        name: of the table.
        key: the patient's.
        time: of the day; None where no name says it.
        type: of the time: integer for days, date.
        named: the column of the test, or of the event.
        value: the column of a test's value; None unless the table is long.
        unit: the column of the unit of a value, in a long table.
        once: whether it is a table of events.
    """

    name: str
    key: str
    time: str | None = None
    type: str = DATE
    named: str | None = None
    value: str | None = None
    unit: str | None = None
    once: bool = False


def placed_tables(tables: Mapping[str, Sequence[Entry]]) -> tuple[str, dict[str, Placed]]:
    """Propose the table of patients, and the columns of each table that have a place.

    Args:
        tables: the columns of each table, by its name.

    Returns:
        The name of the table of patients, and what is proposed of each.

    Raises:
        InputError: a table has no column that can be the patient's key.
    """
    keys = _keys(tables)
    placed = {name: _placed(name, keys[name], columns) for name, columns in tables.items()}
    return _patients(tables, placed), placed


def _keys(tables: Mapping[str, Sequence[Entry]]) -> dict[str, str]:
    """Choose the patient's key of each table."""
    named = {
        name: patient_keys(name, [entry.name for entry in columns])
        for name, columns in tables.items()
    }
    if all(named.values()):
        return {name: found[0] for name, found in named.items()}
    everywhere = set.intersection(
        *({entry.name for entry in columns} for columns in tables.values())
    )
    first = next(iter(tables.values()))
    common = [entry.name for entry in first if entry.name in everywhere]
    likely = [name for name in common if words(name)[-1:] in (["id"], ["nr"], ["no"], ["key"])]
    chosen = (likely or common)[:1]
    for name, found in named.items():
        if not chosen and not found:
            raise InputError(
                f"table {name} has no column that looks like the patient's key, and no column "
                "stands in every table; rename the key to the same name in all tables, such as "
                "patient_id"
            )
    return {name: found[0] if found and not chosen else chosen[0] for name, found in named.items()}


def patient_keys(table: str, names: Sequence[str]) -> list[str]:
    """Return the columns that can be the patient's key by their names.

    In a table of patients, that is also a plain number.

    >>> patient_keys("visits", ["id", "Patient ID"]), patient_keys("patients", ["ID", "sex"])
    (['Patient ID'], ['ID'])
    """
    found = [name for name in names if _is_patient_key(name)]
    plain = [name for name in names if compact(name) in _NUMBERS]
    return found or (plain[:1] if is_patients(table) else [])


def is_patients(table: str) -> bool:
    """Tell whether a table has one row a patient, by its name."""
    return bool(_PATIENTS & {*words(table)})


def _is_patient_key(name: str) -> bool:
    match = find(name)
    return match is not None and match.variable.type == KEY and "patient" in match.variable.name


def _placed(name: str, key: str, columns: Sequence[Entry]) -> Placed:
    others = [entry for entry in columns if entry.name != key]
    time, kind = _time(others)
    rest = [entry.name for entry in others if entry.name != time]
    test, value = _first(rest, _TESTS), _first(rest, _VALUES)
    if test is not None and value is not None:
        return Placed(name, key, time, kind, test, value, _first(rest, _UNITS))
    event = _first(rest, _EVENTS)
    if event is not None and time is not None and value is None and len(rest) <= 2:
        return Placed(name, key, time, kind, event, once=True)
    return Placed(name, key, time, kind)


def _time(columns: Sequence[Entry]) -> tuple[str | None, str]:
    """Choose the first column of a day, but rather where something starts than where it ends."""
    times = list(_times(columns))
    starts = [(name, kind) for name, kind in times if not is_end(name)]
    return next(iter([*starts, *times]), (None, DATE))


def _times(columns: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    for entry in columns:
        match = find(entry.name)
        dated = match is not None and match.variable.type == "date"
        if entry.kind in ("date", "datetime"):
            yield entry.name, entry.kind
        elif compact(entry.name) in _DAYS:
            yield entry.name, DAYS
        elif dated or moment_of(entry.name) is not None:
            yield entry.name, moment_of(entry.name) or DATE


def _first(names: Sequence[str], meanings: frozenset[str]) -> str | None:
    return next((name for name in names if compact(name) in meanings), None)


def _patients(tables: Mapping[str, Sequence[Entry]], placed: Mapping[str, Placed]) -> str:
    """Choose the table of patients: by its name, or the one that looks least like rows."""
    named = [name for name in tables if is_patients(name)]
    plain = [name for name, one in placed.items() if one.time is None and one.named is None]
    return (named or plain or list(tables))[0]
