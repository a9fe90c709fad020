"""Unique records: does the synthetic table repeat what is known of people who are easy to find?

A person whose declared quasi-identifiers (say age, sex and postcode) nobody shares can be found in
another register. If a synthetic row has the same combination together with the same sensitive
values, whoever finds it reads off something about that person; by memory of the generator, or by
chance.

**Who is unique.** A unit with a combination that no other unit of *both sides together* has. So
uniqueness does not depend on who is on which side: given the unique units, each is in the data as
by a fair coin, and Fisher's test of hits holds. Uniqueness within one's own side would bring in
pairs of people who share a combination across the sides, whose labels are opposite; and within the
source alone, people in the data would be rarer than the others by definition.

A unit with several rows is unique if one of them is, and hit if such a row is repeated. Cells are
equal if their codes are: a number of a long scale counts by its cell of the schema's grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsynth.eval.attack_stats import Attack, AttackSuccess, CombinedAttacks, MatchedGroups, Success
from dpsynth.eval.core import Measure, PartResult, Rate
from dpsynth.eval.distances import row_kinds
from dpsynth.schema import Schema

Places = tuple[int, ...]

MAX_SETS = 20  # of quasi-identifiers that are tried
KEY, TITLE = "memorization:unique", "Unique combinations repeated"


@dataclass(frozen=True)
class _Tried:
    """A set of quasi-identifiers, and how people fared who are unique on it."""

    columns: tuple[str, ...]
    success: Success


def unique(sides: MatchedGroups, rng: np.random.Generator, smoke: str) -> Attack:
    """Try all quasi-identifiers together, and each smaller set of two or more.

    Args:
        sides: who is compared.
        rng: which sets are tried where there are more than `MAX_SETS`.
        smoke: what every meaning ends with.
    """
    schema = sides.metric.codec.schema
    known = _places(schema, "quasi_identifier")
    if not known:
        return _left_out("no quasi-identifier is declared, so unique records were not looked for")
    learned = _learned(schema, known)
    sets, capped = _sets(known, rng)
    names = sides.metric.codec.names
    tried = []
    for places in sets:
        success = _success(sides, places, learned)
        if success is not None:
            tried.append(_Tried(tuple(names[place] for place in places), success))
    if not tried:
        return _left_out("nobody is unique on the declared quasi-identifiers, on both sides")
    details = [{"columns": list(one.columns), "success": one.success.to_dict()} for one in tried]
    notes = (
        (f"of the sets of quasi-identifiers, {len(sets)} were tried: all, and others drawn",)
        if capped
        else ()
    )
    extra = ", ".join(names[place] for place in learned)
    part = PartResult(_measures(tried, len(known), extra, smoke), {"unique": details}, notes)
    combined = CombinedAttacks(
        tuple(AttackSuccess(", ".join(one.columns), one.success) for one in tried)
    )
    event = "a combination is repeated with what it would give away"
    return Attack(part, (combined.finding(KEY, TITLE, event),), (combined.power(KEY),))


def _places(schema: Schema, role: str) -> Places:
    return tuple(at for at, column in enumerate(schema.modelled) if role in column.roles)


def _learned(schema: Schema, known: Places) -> Places:
    """Return what an attacker would learn: sensitive columns, else the target, else the rest."""
    for role in ("sensitive", "target"):
        places = tuple(place for place in _places(schema, role) if place not in known)
        if places:
            return places
    return tuple(place for place in range(len(schema.modelled)) if place not in known)


def _sets(known: Places, rng: np.random.Generator) -> tuple[list[Places], bool]:
    """Return the sets to try, all columns first; and whether there would be more."""
    columns = len(known)
    if 2**columns - columns - 1 <= MAX_SETS:
        sizes = range(columns, min(columns, 2) - 1, -1)
        return [chosen for size in sizes for chosen in combinations(known, size)], False
    sets = [known]
    while len(sets) < MAX_SETS:
        size = int(rng.integers(2, columns))
        chosen = tuple(known[at] for at in sorted(rng.choice(columns, size=size, replace=False)))
        if chosen not in sets:
            sets.append(chosen)
    return sets, True


def _success(sides: MatchedGroups, known: Places, learned: Places) -> Success | None:
    """Count unique units of each side, and those of whom a row is repeated."""
    source, holdout = sides.source, sides.holdout
    codes = np.concatenate([source.view.codes, holdout.view.codes, sides.synthetic.codes])
    real = source.view.rows + holdout.view.rows
    unit = np.concatenate([source.unit, source.units + holdout.unit])
    kinds = row_kinds(codes[:, list(known)])[:real]
    owned = np.unique(np.stack([kinds, unit], axis=1), axis=0)[:, 0]
    alone = np.bincount(owned)[kinds] == 1
    whole = row_kinds(codes[:, list(known + learned)])
    hit = alone & np.isin(whole[:real], whole[real:])
    people, hits = np.unique(unit[alone]), np.unique(unit[hit])
    rates = []
    for inside in (True, False):
        here, struck = ((group < source.units) == inside for group in (people, hits))
        if not here.any():
            return None
        rates.append(Rate(int(struck.sum()), int(here.sum())))
    return Success(rates[0], rates[1])


def _measures(tried: Sequence[_Tried], known: int, extra: str, smoke: str) -> tuple[Measure, ...]:
    """Return the figure for all quasi-identifiers together, if somebody is unique on them."""
    first = tried[0]
    if len(first.columns) != known:
        return ()
    meaning = (
        f"Of people whom nobody equals in {', '.join(first.columns)}: how much more often a "
        f"synthetic row repeats this together with {extra or 'nothing else'} for people "
        f"in the data than for others; 0 without memorisation. {smoke}"
    )
    return (Measure(f"unique:{known}", TITLE, first.success.excess, 0.0, meaning),)


def _left_out(note: str) -> Attack:
    return Attack(PartResult((), {"unique": []}, (note,)))
