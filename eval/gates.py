"""Internal gates: thresholds with reasons, on figures that were computed from real rows.

Their verdicts stay in the office. Public gates, which decide on a release, are elsewhere: they use
nothing that depends on real rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpsynth._util.messages import did_you_mean
from dpsynth._util.strict_yaml import parse_yaml
from dpsynth._util.written_files import read_document, refusal
from dpsynth.errors import InputError, SchemaError

Measures = Mapping[str, Mapping[str, Any]]

KEYS = (
    *("tvd1", "tvd2", "tvd3", "correlation", "information", "missing", "patterns", "heaping"),
    *(
        "tails",
        "outside",
        "outside_worst",
        "mean_worst",
        "followed_worst",
        "followed_correlation",
        "reach_worst",
        "queries",
        "queries_worst",
        "c2st",
        "rules",
        "copies",
        "sdmetrics_quality",
    ),
    *("sdmetrics_shapes", "sdmetrics_pairs", "sdmetrics_diagnostic", "group_means", "survival"),
    *("cox", "subgroup_worst_tvd2"),
    *("never", "never_rows", "edits", "seldom", "strongest", "levels", "patterns_unseen"),
)
KINDS = (
    *(
        "tvd1",
        "followed",
        "mean",
        "reach",
        "tstr",
        "tstr_gap",
        "tstr_linear",
        "tstr_linear_gap",
        "calibration",
    ),
    *("importance", "odds", "subgroup_worst_tstr", "effects", "signs"),
)
OTHERS_UNMEASURED = {
    "rules": "Rows that break a rule (the schema declares no rule)",
    "subgroup_worst_tvd2": "Distance of pairs of columns in the group kept worst",
    "c2st": "Classifier telling synthetic from real",
    "mean_worst": "Mean, worst column",
    "reach_worst": "Reach of the values, worst column",
    "correlation": "Difference of correlations",
    "outside_worst": "Values beyond the source's range, worst column",
}
FACTS_UNMEASURED = {
    "never": "Pairs of values that no real row has",
    "never_rows": "Rows with a pair of values that no real row has",
    "edits": "Rows against public lists of clinical edits",
    "seldom": "Rare pairs of values, over the real rows",
    "strongest": "What is left of the 20 strongest relations",
    "patterns_unseen": "Rows with a pattern of missing cells that no real row has",
}
UNMEASURED = {
    "tstr_gap:*": "Loss of prediction models",
    "odds:*": "Overlap of odds ratios",
    "effects:*": "Size of effects",
    "signs:*": "Effects with the wrong sign",
}
OF_HISTORIES = {  # figures of whole histories; the others are of one table
    "values": "Values, by place in a patient's series",
    "panels": "Tests and values of one day together",
    "links": "Rows within follow-up and stays, and events that imply each other",
    "calendar": "Days of rows, gaps, and the last day",
    "prevalence": "How many patients have each code",
    "effects": "Effects of codes on values and on each other",
    "event_curves": "Time to events, by group",
    "coefficients": "Coefficients of Cox and linear models",
}
TIMES_CHANCE, OR_AT_MOST = "times_chance", "or_at_most"
LIMITS = ("at_most", "at_least", "beyond_reference", TIMES_CHANCE)
OR_NOISE = "or_noise"
EVERY = ":*"  # ends the key of a gate for all figures of a kind


@dataclass(frozen=True)
class Gate:
    """A threshold.

    Attributes:
        key: of the measure; ``tstr_gap:*`` stands for all of its kind.
        kind: one of `LIMITS`.
        limit: the number.
        reason: why it is there; one sentence.
        or_noise: the limit of ``at_most`` or ``beyond_reference`` is no less than so many times the
            noise of a count.
        or_at_most: the limit of ``times_chance`` is no less than this figure. Such a gate passes
            as well if the interval reaches the figure of the bootstrap, as that of one varies.
    """

    key: str
    kind: str
    limit: float
    reason: str
    or_noise: float = 0.0
    or_at_most: float = 0.0

    @property
    def of_histories(self) -> bool:
        """Whether its figure is one of whole histories, and not of one table."""
        return self.key in OF_HISTORIES

    def verdicts(self, measures: Measures, noise: float = 0.0) -> list[dict[str, Any]]:
        """Judge the measures that the gate is about; what was not measured has no verdict.

        Args:
            measures: of an evaluation, by key.
            noise: standard deviation of the noise of a count that the run's plan announces, as a
                share of the population; 0 where no run is known.
        """
        if self.or_noise * noise > self.limit:
            return replace(self, limit=self.or_noise * noise, or_noise=0.0).verdicts(measures)
        keys = [self.key]
        if self.key.endswith(EVERY):
            stem = self.key.removesuffix("*")
            keys = [key for key in measures if key.startswith(stem)] or [self.key]
        return [self._verdict(key, measures.get(key)) for key in keys]

    def _verdict(self, key: str, measure: Mapping[str, Any] | None) -> dict[str, Any]:
        verdict: dict[str, Any] = {
            "key": key,
            "title": (UNMEASURED | OTHERS_UNMEASURED | FACTS_UNMEASURED | OF_HISTORIES).get(
                key, key
            )
            if measure is None
            else measure["title"],
            "passed": None,
            "value": None,
            "limit": self._wording(None),
            "reason": self.reason,
        }
        if measure is None:
            return verdict
        value, reference = measure["value"], measure["reference"]
        if reference is None or self.kind == TIMES_CHANCE:
            reference = measure["chance"]
        if self.kind in ("beyond_reference", TIMES_CHANCE) and reference is None:
            return verdict | {"value": value}
        if self.kind == "at_most":
            passed = value <= self.limit
        elif self.kind == "at_least":
            passed = value >= self.limit
        elif self.kind == TIMES_CHANCE:
            low = value if measure.get("low") is None else measure["low"]
            passed = value <= max(self.limit * reference, self.or_at_most) or low <= reference
        else:
            one = measure["best"] == 1  # where a figure may lie on either side of it
            worse = abs(value - 1) - abs(reference - 1) if one else value - reference
            passed = worse <= self.limit
        return verdict | {"passed": passed, "value": value, "limit": self._wording(reference)}

    def _wording(self, reference: float | None) -> str:
        if self.kind == "beyond_reference":
            beside = "" if reference is None else f" ({reference:.3g})"
            return f"at most {self.limit:.3g} worse than the reference{beside}"
        if self.kind == TIMES_CHANCE:
            beside = "" if reference is None else f" ({reference:.3g})"
            least = f" or {self.or_at_most:.3g}" if self.or_at_most else ""
            return f"at most {self.limit:.3g} times a bootstrap{beside}{least}"
        return f"{self.kind.replace('_', ' ')} {self.limit:.3g}"


def shipped() -> str:
    """Return the file of gates that comes with dpsynth."""
    return files("dpsynth.eval").joinpath("gates.yaml").read_text(encoding="utf-8")


def gates(path: str | Path | None = None) -> tuple[Gate, ...]:
    """Return the gates that come with dpsynth, with those of a file in their place.

    Raises:
        InputError: the file is missing, or is no file of gates; all is said with its place.
    """
    by_key: dict[str, Gate] = {}
    _take(by_key, _read(parse_yaml(shipped().encode(), "gates.yaml"), "gates.yaml"))
    if path is None:
        return tuple(by_key.values())
    try:
        document = read_document(path, "file of gates", never="a file of gates is not")
    except SchemaError as error:
        title = f"{path}, which should hold gates (dpsynth evaluate --show-gates prints some), has"
        raise refusal(title, error.problems) from None
    _take(by_key, _read(document, str(path)))
    return tuple(by_key.values())


def _take(by_key: dict[str, Gate], more: Sequence[Gate | str]) -> None:
    """Put gates in the place of earlier ones of their keys; a key alone takes one away."""
    for gate in more:
        if isinstance(gate, Gate):
            by_key[gate.key] = gate
        else:
            by_key.pop(gate, None)


def judged(measures: Measures, limits: Sequence[Gate], noise: float = 0.0) -> list[dict[str, Any]]:
    """Return the verdicts of all gates, in their order; ``noise`` as in `Gate.verdicts`."""
    return [verdict for gate in limits for verdict in gate.verdicts(measures, noise)]


def _read(document: Any, place: str) -> list[Gate | str]:
    """Read a document; a key alone stands for a gate that is switched off."""
    if not isinstance(document, dict) or set(document) != {"version", "gates"}:
        raise InputError(f"{place}: a file of gates has the keys version and gates")
    if document["version"] != 1 or not isinstance(document["gates"], list):
        raise InputError(f"{place}: version is 1, and gates is a list")
    return [_gate(one, f"{place}: gates[{i}]") for i, one in enumerate(document["gates"])]


def _gate(entry: Any, place: str) -> Gate | str:
    if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
        raise InputError(f"{place}: a gate has a key, such as tvd2")
    key: str = entry["key"]
    stem, mark, _ = key.partition(":")
    if stem not in (KINDS if mark else (*KEYS, *OF_HISTORIES)):
        known = (*KEYS, *(f"{kind}:*" for kind in KINDS), *OF_HISTORIES)
        raise InputError(f"{place}: there is no measure '{key}'{did_you_mean(key, known)}")
    if entry.get("skip") is True:
        return key
    unknown = [
        str(name)
        for name in entry
        if name not in ("key", "skip", "reason", OR_NOISE, OR_AT_MOST, *LIMITS)
    ]
    if unknown:
        meant = did_you_mean(unknown[0], LIMITS)
        raise InputError(f"{place}: there is no '{unknown[0]}' here{meant}")
    kinds = [name for name in LIMITS if name in entry]
    if len(kinds) != 1:
        raise InputError(f"{place}: a gate has one of {', '.join(LIMITS)}, or skip: true")
    limit, reason = entry[kinds[0]], entry.get("reason")
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not abs(limit) < 1e9:
        raise InputError(f"{place}: {kinds[0]} is a number")
    if not isinstance(reason, str) or not reason.strip():
        raise InputError(f"{place}: a gate has a reason, one sentence")
    or_noise = entry.get(OR_NOISE, 0)
    if (
        isinstance(or_noise, bool)
        or not isinstance(or_noise, int | float)
        or not 0 <= or_noise < 1e3
    ):
        raise InputError(f"{place}: {OR_NOISE} is a number from 0, how many times the noise")
    if or_noise and kinds[0] not in ("at_most", "beyond_reference"):
        raise InputError(f"{place}: {OR_NOISE} goes with at_most or beyond_reference")
    least = entry.get(OR_AT_MOST, 0)
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least < 1e9:
        raise InputError(f"{place}: {OR_AT_MOST} is a number from 0")
    if least and kinds[0] != TIMES_CHANCE:
        raise InputError(f"{place}: {OR_AT_MOST} goes with {TIMES_CHANCE}")
    return Gate(key, kinds[0], float(limit), reason, float(or_noise), float(least))
