"""The policy of a ledger: what an office may still spend, as one public document.

A policy caps what fits may cost: each one, all of any 365 days, all together, for everybody and for
each *tier* (purpose) of its own. It says which names of datasets share people, which generators
may be fitted, and what a release needs. Every number has a reason, its basis.

The document is YAML or JSON; docs/governance.md explains each key. `policy_lines` puts it into
words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.field_reader import FieldFindings, FieldReader
from dpsynth._util.formatting import counted
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth._util.outside_names import allowances, is_allowance, outside_name
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import digest
from dpsynth._util.written_files import read_plain, refusal
from dpsynth.policy.limits import NAME, VERSION, Cap, Caps, DatasetGroup, Population, Tier
from dpsynth.privacy.accounting import MIN_DELTA
from dpsynth.privacy.answer_events import LABELS, LINKAGE


@dataclass(frozen=True)
class Policy:
    """What an office may spend, on what, and what a release needs.

    Attributes:
        name: for people.
        delta: every cap is a guarantee at this delta.
        caps: general ones, of which there is at least one.
        tiers: in the order of the document; where there are any, a fit names one.
        groups: datasets that share one budget; a dataset in none has a budget of its own.
        models: generators that may be fitted; None allows all of dpsynth, and of other packages
            none.
        minimum_population: of a dataset that may be fitted.
        allow_refuse: whether a column may refuse a cell, one bit outside the guarantee.
        allow_rules_from_rows: whether a release may keep rules that were read off the data, which
            the guarantee does not cover.
        gates: that a release must have passed.
        sign_off: how many people must sign a run's entry before its release.
        ledger: id of the only ledger that it is for; None for any.

    >>> caps = {"total": {"epsilon": 8, "basis": "decision of the board"}}
    >>> document = {"dpsynth_policy": 1, "name": "ward", "delta": 1e-6, "caps": caps}
    >>> Policy.from_dict(document, "policy")
    <Policy ward, delta 1e-06, 0 tiers>
    """

    name: str
    delta: float
    caps: Caps
    tiers: tuple[Tier, ...] = ()
    groups: tuple[DatasetGroup, ...] = ()
    models: tuple[str, ...] | None = None
    minimum_population: Population | None = None
    allow_refuse: bool = True
    allow_rules_from_rows: bool = False
    gates: tuple[str, ...] = ()
    sign_off: int = 0
    ledger: str | None = None

    def __repr__(self) -> str:
        """Name the policy."""
        return short_repr(
            self, self.name, f"delta {self.delta:g}", counted(len(self.tiers), "tier")
        )

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file, YAML or JSON by its suffix.

        Raises:
            InputError: it cannot be read, or has mistakes; all of them are listed.
        """
        return cls(**read_policy(read_document(path), str(path)))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str) -> Policy:
        """Read a policy from what YAML or JSON gave; ``source`` is what messages call it.

        Raises:
            InputError: it has mistakes; all of them are listed.
        """
        return cls(**read_policy(document, source))

    def allows(self, model: str) -> bool:
        """Whether a generator may be fitted; one of another package needs to be listed."""
        if self.models is None:
            return outside_name(model) is None
        return any(text in self.models for text in allowances(model))

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as JSON types; what is absent or at its default is left out."""
        document: dict[str, Any] = {
            "dpsynth_policy": VERSION,
            "name": self.name,
            "delta": self.delta,
            "caps": self.caps.to_dict(),
        }
        if self.tiers:
            document["tiers"] = {tier.name: tier.to_dict() for tier in self.tiers}
        if self.groups:
            document["datasets"] = {group.name: list(group.members) for group in self.groups}
        if self.models is not None:
            document["models"] = list(self.models)
        if self.minimum_population is not None:
            minimum = self.minimum_population
            document["minimum_population"] = {"value": minimum.value, "basis": minimum.basis}
        if not self.allow_refuse:
            document["allow_refuse"] = False
        if self.allow_rules_from_rows:
            document["allow_rules_from_rows"] = True
        if self.gates:
            document["gates"] = list(self.gates)
        if self.sign_off:
            document["sign_off"] = {"people": self.sign_off}
        if self.ledger is not None:
            document["ledger"] = self.ledger
        return document

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the policy; the same for documents that say the same."""
        return digest(self.to_dict())

    def group_of(self, name: str) -> str:
        """Give the name, in lower case, of the budget that a dataset draws on."""
        lowered = name.lower()
        for group in self.groups:
            if lowered in group.members:
                return group.name
        return lowered

    def members(self, name: str) -> tuple[str, ...]:
        """Give all names, in lower case, that share the budget of a dataset, its own included."""
        lowered = name.lower()
        for group in self.groups:
            if lowered in group.members:
                return group.members
        return (lowered,)

    def tier(self, name: str | None) -> Tier | None:
        """Give the tier of this name, whatever its case; None where there is none."""
        for tier in self.tiers:
            if name is not None and tier.name.lower() == name.lower():
                return tier
        return None


MAX_PEOPLE = 20

TOP_KEYS = (
    *("dpsynth_policy", "name", "delta", "caps", "tiers", "datasets", "models"),
    *("minimum_population", "allow_refuse", "allow_rules_from_rows", "gates", "sign_off"),
    "ledger",
)
CAP_KEYS = ("release", "year", "total")
TIER_KEYS = ("caps", "releases_a_year", "least")
NO_BASIS = "is missing: say who decided it and why (a law, a board's decision, a measurement)"

_NAMES = "has 1 to 64 letters, digits, '.', '_' and '-', and starts with a letter or digit"
_HIDDEN = "has a line break or another character that cannot be shown; write one line of plain text"
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EXPONENT = re.compile(r"\d+(\.\d*)?[eE][+-]?\d+")  # a number that YAML 1.1 takes for a text
STATISTICS = "statistics"
"""What a policy's list of models calls statistics, which no generator answers."""


def read_document(path: str | Path) -> Any:
    """Parse a policy file, at most 1 MiB of YAML or JSON, without running anything in it.

    Raises:
        InputError: it is missing, too large, or not plain YAML or JSON.
    """
    return read_plain(path, "policy", subject="a policy is", title=f"policy {Path(path)} has")


def read_policy(document: object, source: str) -> dict[str, Any]:
    """Read what YAML or JSON gave; ``source`` is what error messages call it.

    Raises:
        InputError: with every mistake, one a line, in the order of reading.
    """
    findings = FieldFindings()
    top = FieldReader(document, "", findings)
    top.refuse_unknown(TOP_KEYS)
    if "dpsynth_policy" not in top.values:
        top.mistake("dpsynth_policy", f"is missing; write dpsynth_policy: {VERSION}")
    elif type(version := top.values["dpsynth_policy"]) is not int or version != VERSION:
        stated = shown(version)
        top.mistake("dpsynth_policy", f"this dpsynth reads version {VERSION}, not {stated}")
    if not top.has("name"):
        top.gap("name", "is missing: say whose policy this is, and of which year")
    values: dict[str, Any] = dict(
        name=_text(top, "name") or "",
        delta=_read_delta(top),
        caps=_read_caps(top),
        tiers=_read_tiers(top),
        groups=_read_groups(top),
        models=_read_models(top),
        minimum_population=_read_population(top),
        allow_refuse=top.flag("allow_refuse", True),
        allow_rules_from_rows=top.flag("allow_rules_from_rows", False),
        gates=_read_gates(top),
        sign_off=_read_sign_off(top),
        ledger=_read_ledger(top),
    )
    if not values["caps"] and "caps" not in top.values:
        top.mistake("caps", "is missing; a policy caps at least one of release, year and total")
    if findings.everything:
        raise refusal(f"policy {source} has", findings.everything)
    return values


def _read_ledger(top: FieldReader) -> str | None:
    """Read the id of the ledger that a policy is for."""
    ledger = _text(top, "ledger")
    if ledger is None or not _ID.fullmatch(ledger):
        if top.has("ledger") and ledger is not None:
            top.mistake("ledger", "the id of a ledger is expected: `dpsynth ledger show --json`")
        return None
    return ledger


def _text(part: FieldReader, key: str) -> str | None:
    """Read a text that is one line, as terminals and pages show it."""
    text = part.text(key)
    if text is not None and not text.isprintable():
        part.mistake(key, f"the text {_HIDDEN}")
    return text


def _number(part: FieldReader, key: str) -> float | None:
    """Read a finite number; also one like 1e-5, which YAML takes for a text."""
    value = part.values.get(key)
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        part.values[key] = float(value)
    number = part.number(key)
    return None if number is None else float(number)


def _read_delta(top: FieldReader) -> float:
    delta = _number(top, "delta")
    if not top.has("delta"):
        top.gap("delta", "is missing; every cap is a guarantee at this delta: write delta: 1.0e-6")
    elif delta is not None and not MIN_DELTA <= delta < 1:
        top.mistake("delta", f"a number of at least {MIN_DELTA:g} and below 1 is expected")
    return delta or 0.5


def _read_caps(owner: FieldReader) -> Caps:
    part = owner.part("caps")
    part.refuse_unknown(CAP_KEYS)
    caps = {key: _read_cap(part, key) for key in CAP_KEYS if key in part.values}
    if "caps" in owner.values and not caps:
        owner.gap("caps", f"is empty; cap at least one of {listed(CAP_KEYS)}")
    return Caps(**caps)


def _read_cap(owner: FieldReader, key: str) -> Cap:
    """Read an epsilon with its basis."""
    if not owner.has(key):
        owner.gap(key, 'is empty; write {epsilon: ..., basis: "..."}, or remove the key')
        return Cap(1.0, "")
    if not isinstance(owner.values[key], Mapping):
        expected = 'an epsilon and its basis are expected: {epsilon: 0.5, basis: "..."}'
        owner.mistake(key, expected)
        return Cap(1.0, "")
    part = owner.part(key)
    part.refuse_unknown(("epsilon", "basis"))
    epsilon, basis = _number(part, "epsilon"), _text(part, "basis")
    if not part.has("epsilon"):
        part.gap("epsilon", "is missing; write a number above 0")
    elif epsilon is not None and epsilon <= 0:
        part.mistake("epsilon", f"a number above 0 is expected, not {shown(epsilon)}")
    if not part.has("basis"):
        part.gap("basis", NO_BASIS)
    return Cap(epsilon or 1.0, basis or "")


def _read_tiers(top: FieldReader) -> tuple[Tier, ...]:
    part, tiers = top.part("tiers"), []
    names: dict[str, str] = {}
    for name in part.values:
        _check_name(part, name, name, "the name of a tier")
        if name.lower() in names:
            part.mistake(
                name, f"differs from {shown(names[name.lower()])} in case only; rename one"
            )
        names.setdefault(name.lower(), name)
        tier = part.part(name)
        tier.refuse_unknown(TIER_KEYS)
        minimum = _read_cap(tier, "least") if "least" in tier.values else None
        planned = tier.whole("releases_a_year", minimum=1)
        tiers.append(Tier(name, _read_caps(tier), planned, minimum))
    return tuple(tiers)


def _read_groups(top: FieldReader) -> tuple[DatasetGroup, ...]:
    part, groups = top.part("datasets"), []
    home: dict[str, str] = {}
    for name in part.values:
        _check_name(part, name, name, "the name of a group")
        if not part.has(name) or part.values[name] == []:
            part.gap(name, "is empty; list the datasets that share people, or remove the group")
        members = {name.lower()}
        for member in _read_names(part, name) or ():
            _check_name(part, name, member, "the name of a dataset")
            members.add(member.lower())
        for member in sorted(members):
            if member in home:
                reason = f"{shown(member)} is in {shown(home[member])} already"
                part.mistake(name, f"{reason}; a dataset is in one group: join the two groups")
            home.setdefault(member, name)
        groups.append(DatasetGroup(name.lower(), tuple(sorted(members))))
    return tuple(sorted(groups, key=lambda group: group.name))


def _read_models(top: FieldReader) -> tuple[str, ...] | None:
    from dpsynth.models.registry import KNOWN  # light: a table of names

    models, every = _read_names(top, "models"), (*KNOWN, STATISTICS, LABELS, LINKAGE)
    for model in models or ():
        if model not in every and not is_allowance(model):
            meant = did_you_mean(model, every)
            known = f"known: {listed(every)}; one of another package is written package:name"
            top.mistake("models", f"{shown(model)} is not a model{meant}; {known}")
    if models == ():
        top.mistake("models", "allows none; list generators, or remove the key to allow all")
    return None if models is None else tuple(sorted(models))


def _read_gates(top: FieldReader) -> tuple[str, ...]:
    gates = _read_names(top, "gates") or ()
    for gate in gates:
        if not gate.isprintable():
            top.mistake("gates", f"{shown(gate)} {_HIDDEN}")
    return tuple(sorted(gates))


def _read_names(part: FieldReader, key: str) -> tuple[str, ...] | None:
    """Read a list of names, none of them blank."""
    names = part.texts(key)
    if names is not None and "" in names:
        part.mistake(key, "one of the names is blank; write it, or remove it")
    return None if names is None else tuple(name for name in names if name)


def _read_population(top: FieldReader) -> Population | None:
    if "minimum_population" not in top.values:
        return None
    if not top.has("minimum_population"):
        top.gap("minimum_population", "is empty; write {value: ..., basis: ...} or remove the key")
        return None
    if not isinstance(top.values["minimum_population"], Mapping):
        expected = 'a value and its basis are expected: {value: 5000, basis: "..."}'
        top.mistake("minimum_population", expected)
        return None
    part = top.part("minimum_population")
    part.refuse_unknown(("value", "basis"))
    value, basis = part.whole("value", minimum=1), _text(part, "basis")
    if not part.has("value"):
        part.gap("value", "is missing; write the least number of privacy units")
    if not part.has("basis"):
        part.gap("basis", NO_BASIS)
    return Population(value or 1, basis or "")


def _read_sign_off(top: FieldReader) -> int:
    part = top.part("sign_off")
    part.refuse_unknown(("people",))
    people = part.whole("people", minimum=0)
    if "sign_off" in top.values and not part.has("people"):
        part.gap("people", "is missing; write how many people sign before a release")
    if people is not None and people > MAX_PEOPLE:
        part.mistake("people", f"at most {MAX_PEOPLE} people sign, not {people}")
    return people or 0


def _check_name(part: FieldReader, key: str, name: str, subject: str) -> None:
    if not NAME.fullmatch(name):
        part.mistake(key, f"{subject} {_NAMES}; {shown(name)} does not")


def policy_lines(policy: Policy) -> list[str]:
    """Say what a policy asks for, a line each."""
    lines = [f"delta       {policy.delta:g}, for every cap", *_caps(policy.caps, "")]
    for tier in policy.tiers:
        lines.append(f"tier        {tier.name}{_planned(tier.releases_a_year)}")
        lines += _caps(tier.caps, "  ")
        if tier.least is not None:
            lines.append(f"            at least {tier.least.epsilon:g}: {tier.least.basis}")
    for group in policy.groups:
        lines.append(f"one budget  {group.name}: {', '.join(group.members)}")
    if policy.models is not None:
        lines.append(f"models      {', '.join(policy.models)}")
    if policy.minimum_population is not None:
        minimum = policy.minimum_population
        lines.append(f"population  at least {minimum.value}: {minimum.basis}")
    if not policy.allow_refuse:
        lines.append("refusals    no column may refuse a cell")
    if policy.gates:
        lines.append(f"gates       a release needs {', '.join(policy.gates)}")
    if policy.sign_off:
        people = "1 person" if policy.sign_off == 1 else f"{policy.sign_off} people"
        lines.append(f"sign-off    {people} other than the one who ran the fit, before a release")
    return lines


def _planned(releases: int | None) -> str:
    if not releases:
        return ""
    return f", {releases} {'release' if releases == 1 else 'releases'} a year planned"


def _caps(caps: Caps, indent: str) -> list[str]:
    named = (("a release", caps.release), ("365 days", caps.year), ("in total", caps.total))
    return [
        f"{indent}cap         epsilon {cap.epsilon:g} {'in ' if name == '365 days' else ''}{name}: "
        f"{cap.basis}"
        for name, cap in named
        if cap is not None
    ]
