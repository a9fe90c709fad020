"""What a certificate says in words: what is exact, what is floating point, what is not covered.

The sentences are part of the certificate's format: verification compares them word for word, so a
change of wording is a change of the format's version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from dpsynth._util.formatting import figure_at_most
from dpsynth._util.outside_names import outside_name
from dpsynth.certificate.table_bound import bounds_of
from dpsynth.privacy import (
    CodeDiscovery,
    Event,
    KeyCounts,
    LaplaceCounts,
    LinkCounts,
    PoissonSgd,
    RowSums,
    StaySums,
    TeacherVotes,
    TopChoice,
    Unit,
    counted_of,
    whom,
)
from dpsynth.privacy.answer_events import LABELS
from dpsynth.privacy.answers import MAX_PAIRS
from dpsynth.privacy.discovery_events import MASS

if TYPE_CHECKING:
    from dpsynth.certificate.charge import Charge, OtherRegister
    from dpsynth.schema import AnySchema

OWN_ROWS = (
    "that each row follows from its own unit alone is an assumption, which nothing checks: where a "
    "cell was computed from other units (a rank, a distance from a mean, a score against other "
    "records), these are protected less"
)
OWN_RECORDS = (
    "that a pair is a candidate, its score and its review follow from its own two records alone, "
    "by declaration of the office, which nothing checks: where they depend on other records, one "
    "record can move the figures further than the noise hides"
)
CHOICE = "the decision to publish and the choice among fits are not covered"


def exact_claims(events: tuple[Event, ...]) -> tuple[str, ...]:
    """Say which noise is exact; no certificate may claim more than these sentences."""
    counted = tuple(
        f"event '{event.name}': whole counts plus discrete Gaussian noise from an exact sampler "
        "(OpenDP); no floating-point number is drawn"
        for event in events
        if not isinstance(event, PoissonSgd | TopChoice | LaplaceCounts)
    )
    laplace = tuple(
        f"event '{event.name}': whole counts plus discrete Laplace noise from an exact sampler "
        "(OpenDP); no floating-point number is drawn"
        for event in events
        if isinstance(event, LaplaceCounts)
    )
    chosen = tuple(
        f"event '{event.name}': {event.chosen} of {event.candidates:,} values are named, by the "
        "exponential mechanism (Gumbel noise of an exact sampler, OpenDP)"
        for event in events
        if isinstance(event, TopChoice)
    )
    found = tuple(
        f"event '{event.name}': a code is listed only if the noisy number of units that have it is "
        f"at least {event.threshold / MASS:.6g}, a threshold that follows from the part of delta "
        f"that is set aside, {event.delta:.6g}; a code that no unit has is never listed"
        for event in events
        if isinstance(event, CodeDiscovery)
    )
    keys = tuple(
        f"event '{event.name}': a key that nobody declared is listed only if its noisy count is at "
        f"least {event.threshold:,}, a threshold that follows from the part of delta that is set "
        f"aside, {event.delta:.6g}; a key that no unit has is never listed"
        for event in events
        if isinstance(event, KeyCounts)
    )
    replaced = tuple(
        f"event '{event.name}': epsilon is for adding or removing a unit; one that takes "
        f"another's place {_moves(event)}"
        for event in events
        if isinstance(event, _REPLACED)
    )
    linked = tuple(
        f"event '{event.name}': {_of_registers(event)}; a person who takes another's place moves "
        "it no further than one who is added or removed"
        for event in events
        if isinstance(event, LinkCounts)
    )
    return counted + laplace + chosen + found + keys + replaced + linked


def _of_registers(event: LinkCounts) -> str:
    """Say whose presence counts of linked pairs hide."""
    most = f"at most {event.cap:,} pairs of each record count"
    if event.records == 1:
        return (
            f"epsilon is for one record of either register with all its pairs, of which {most}; "
            "that no person has a record in both is an assumption, and whoever has moves the "
            "answer at most twice as far"
        )
    return (
        "epsilon is for one person with a record in each register, or in one of them, and all "
        f"pairs of these records; {most}"
    )


_Replaced = RowSums | LaplaceCounts | StaySums | TopChoice | KeyCounts | TeacherVotes
_REPLACED = get_args(_Replaced)


def _moves(event: _Replaced) -> str:
    """Say what substitution does to an answer."""
    if isinstance(event, TopChoice):
        return f"costs at most {event.replacement:g} times as much epsilon in each choice"
    more = f"moves the answer at most {event.replacement:.4g} times as far"
    return more + (", and takes twice the part of delta" if isinstance(event, KeyCounts) else "")


def floating_point_limits(events: tuple[Event, ...]) -> tuple[str, ...]:
    """Say where the proof is about real numbers and the program about floating-point ones."""
    trained = tuple(
        f"event '{event.name}': gradients, clipping and Gaussian noise are floating-point numbers; "
        "the proof is about real ones, and attacks on low-order bits are outside it"
        for event in events
        if isinstance(event, PoissonSgd)
    )
    return (
        *trained,
        "epsilon is computed from privacy loss distributions discretised to the safe side; their "
        "convolution is in floating point",
    )


def not_covered(
    schema: AnySchema,
    charge: Charge | None,
    model: str = "",
    second: OtherRegister | None = None,
) -> tuple[str, ...]:
    """Say what the guarantee leaves out, for this schema, this ledger and this generator.

    ``second`` is the other register, of an answer about pairs of two.
    """
    unit = Unit.of(schema)
    if charge is None:
        scope = "; this fit was charged to no ledger, so the number of fits is not known"
    else:
        scope = f"; when this fit was certified, the ledger held {_held(charge, unit)}"
    if second is not None and second.ledger is not None and second.ledger != charge:
        scope += f"; and {_held(second.ledger, second.unit)}"
    sentences = [
        CHOICE + scope,
        "the schema (columns, bounds, categories, population, rows, rules) is public by "
        "declaration and not protected",
        "what holds for the population at large can be inferred about anyone, whether or not they "
        "are in the data; that is what the data are for",
        "other releases from the same persons add to this one, unless the same ledger counts them",
    ]
    if charge is not None:
        sentences.append(
            "the seal of the ledger is a keyed hash over the office's records; it tells nothing to "
            "those without the ledger's key"
        )
    outside = outside_name(model)
    if outside is not None:
        sentences.append(
            f"the generator is code of the package {outside.package} {outside.version}, not of "
            "dpsynth: dpsynth gave it noisy results and no row, but its code ran in the process "
            "that read the rows, where nothing confines it; the guarantee assumes that it took none"
        )
    if model == LABELS:
        sentences.append(
            "the rows that were labelled are published as they were given: that they are public or "
            "synthetic is the word of whoever gave them"
        )
    sentences += _units(unit)
    sentences.append(OWN_ROWS)
    if second is not None:
        sentences += [f"in the second register, {line}" for line in _units(second.unit)]
        sentences += _PAIRS
        sentences.append(f"{OWN_RECORDS} (why: {second.own_records})")
    refusal = ", or a cell that its column refuses," if schema.may_refuse else ""
    reasons = "a damaged row, no rows, no keys"
    if bounds_of(schema):
        reasons += ", two rows of a key in the main table, a table without a row of a key of it"
    if second is not None:
        reasons += f", more than {MAX_PAIRS:,} pairs"
    sentences.append(
        f"a table that cannot be read ({reasons}){refusal} stops a fit: whether it ended at all is "
        "one bit more"
    )
    return tuple(sentences)


_PAIRS = (
    "the matches that are counted are those among the candidate pairs: matches that blocking left "
    "out are in no figure",
    "of a record with more pairs than the cap, only as many as the cap count: figures are about "
    "the pairs that count",
)


def _held(charge: Charge, unit: Unit) -> str:
    """Say what a dataset had spent when a fit was certified."""
    fits = "1 fit" if charge.fits == 1 else f"{charge.fits} fits"
    others = [name for name in charge.scope if name != charge.dataset.lower()]
    shared = f" and those that share its budget ({', '.join(others)})" if others else ""
    return (
        f"{fits} on dataset '{charge.dataset}'{shared}, with epsilon "
        f"{figure_at_most(charge.epsilon_total)} and delta {figure_at_most(charge.delta_total)} "
        f"in sum for each {counted_of(unit)}"
    )


def _units(unit: Unit) -> list[str]:
    """Say what a unit is, and what is only assumed of those who have several."""
    who = unit.person or "person"
    if unit.name is None:
        alone = "each row is a unit"
        if unit.person is None:
            alone += ": a person with several rows is protected for one"
    else:
        keyless = "; a row without one is a unit of its own" if unit.missing_key == "own" else ""
        alone = (
            f"a unit is a value of column '{unit.name}': a {who} with several values, or one value "
            f"written in several ways, is several units{keyless}"
        )
    if unit.max_units_basis is None:
        return [alone]
    many = "1 unit" if unit.max_units == 1 else f"{unit.max_units} units"
    counted = f"; the ledger counts what {unit.max_units} units cost, by group privacy"
    return [
        alone,
        f"that {whom(unit)} has at most {many} of the table is an assumption, which nothing checks "
        f"(why: {unit.max_units_basis}){counted if unit.max_units > 1 else ''}; whoever has more "
        "is protected less",
    ]
