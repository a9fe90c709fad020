"""Audits of a run that may be published: they attack the training on synthetic rows only.

``audit.json`` beside ``run.json`` holds every audit that was made of the run with a background
drawn from the run itself, in the order in which they were made, and a bundle takes it along. The
canaries are uniform and the rest is drawn from what was released already, so nothing in it comes
from a private row. An audit of tables, ``internal/audit.json``, is another document.

What right guesses of an audit refute, computed again where a bundle is written or checked.

The bound is that of `one_run`, which makes audits and is not at hand where a bundle is
verified: at least v right guesses of r about m canaries have probability at most
beta + 2 m delta alpha under (epsilon, delta), with beta = P[B >= v] and alpha = max over i of
P[v - i <= B < v] / i, for B binomial with r trials of chance e^epsilon / (1 + e^epsilon) (Steinke,
Nasr and Jagielski, arXiv 2305.08846, the main result for approximate privacy).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpsynth._util.strict_json import (
    HUGE,
    bytes_digest,
    check_format,
    check_keys,
    names,
    number,
    parsed,
    read_document,
    read_plain_bytes,
    several,
    sha256_text,
    text,
    truth,
    whole,
    written,
)
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, InputError
from dpsynth.files import updating, write_atomically
from dpsynth.synthesis.run import DOCUMENT as RUN

__all__ = [
    "Audits",
    "AuditClaim",
    "AuditControl",
    "PublicAudit",
    "ViewResult",
    "append_audit",
    "audits_digest",
    "read_audits",
]

FORMAT, VERSION = "dpsynth-audits", 1
INTERNAL = "dpsynth-audit"  # the format of audits that read private rows
DOCUMENT = "audit.json"
MAX_FILE = 32 * 2**20  # bytes
_MAX_AUDITS = 1_000


@dataclass(frozen=True)
class Audits:
    """All public audits of one run.

    Attributes:
        run_sha256: by which the run is known.
        audits: in the order in which they were made.
    """

    run_sha256: str
    audits: tuple[PublicAudit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Write the document; the same audits give the same document."""
        head = {"format": FORMAT, "version": VERSION, "run_sha256": self.run_sha256}
        return head | {"audits": [audit.to_dict() for audit in self.audits]}

    @classmethod
    def from_dict(cls, document: Any, place: str = DOCUMENT) -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range, or it is
                an internal audit.
        """
        if isinstance(document, dict) and document.get("format") == INTERNAL:
            raise ArtifactError(
                f"{place} is an internal audit: it was computed from private rows and never leaves "
                "the office"
            )
        check_keys(document, place, ("format", "version", *names(cls)))
        check_format(document, place, FORMAT, VERSION)
        sha256 = sha256_text(document["run_sha256"], f"{place}: run_sha256")
        audits = several(
            PublicAudit.from_dict,
            document["audits"],
            f"{place}: audits",
            minimum=1,
            maximum=_MAX_AUDITS,
        )
        return cls(sha256, audits)

    def problems(self, certificate: Certificate, model: str) -> list[str]:
        """List what does not fit the run, for each audit."""
        return [
            f"audit {place}: {problem}"
            for place, audit in enumerate(self.audits, start=1)
            for problem in audit.problems(certificate, model)
        ]


def read_audits(folder: str | Path) -> Audits | None:
    """Read the public audits beside a run, or in a bundle; None if there are none.

    Raises:
        ArtifactError: they are damaged, internal, or of another version.
    """
    path = Path(folder) / DOCUMENT
    if not path.exists() and not path.is_symlink():
        return None
    content = read_plain_bytes(path, largest=MAX_FILE)
    return Audits.from_dict(parsed(content, str(path)), str(path))


def append_audit(run_folder: str | Path, audit: PublicAudit) -> Path:
    """Add an audit to those beside its run; the file is written whole or not at all.

    Raises:
        ArtifactError: the file there is damaged or belongs to another run, the run has no
            certificate, or the audit does not fit the run.
        InputError: the folder cannot be written to.
    """
    path, place = Path(run_folder) / DOCUMENT, Path(run_folder) / RUN
    run = read_document(place)
    sha256 = text(run.get("sha256"), f"{place}: sha256")
    if run.get("certificate") is None:
        raise ArtifactError(f"{place} has no certificate, so there is no claim to audit")
    certificate = Certificate.from_dict(run["certificate"], f"{place}: certificate")
    if problems := audit.problems(certificate, certificate.model):
        raise ArtifactError(f"the audit does not fit {place}: {problems[0]}")
    with updating(run_folder):
        before = read_audits(run_folder) or Audits(sha256, ())
        if before.run_sha256 != sha256:
            raise InputError(f"{path} belongs to another run; move it away, then audit again")
        audits = replace(before, audits=(*before.audits, audit))
        Audits.from_dict(audits.to_dict(), str(path))  # nothing is written that cannot be read
        write_atomically(path, written(audits.to_dict()))
    return path


def audits_digest(audits: Audits) -> str:
    """Return the SHA-256 (hex) of the file that holds the audits."""
    return bytes_digest(written(audits.to_dict()))


BACKGROUND = "run"  # the only one whose audits are public
_MAX_CONTROLS = 50
_MAX_UNITS = 10**9
_MAX_SEED = 2**64


@dataclass(frozen=True)
class AuditClaim:
    """What the fit claims."""

    epsilon: float
    delta: float

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly a claim."""
        check_keys(document, place, names(cls))
        delta = number(document["delta"], f"{place}.delta", above=0)
        if delta >= 1:
            raise ArtifactError(f"{place}.delta: a number below 1 is expected")
        return cls(number(document["epsilon"], f"{place}.epsilon", above=0), delta)


@dataclass(frozen=True)
class AuditControl:
    """A leak that the attack must find (positive), or a fit where it must find nothing (negative).

    Attributes:
        key: by which scripts know it.
        title: what was attacked.
        kind: ``positive`` or ``negative``.
        attack: key of the finding that was looked at.
        passed: whether the attack did as it must.
        sentence: what was seen.
    """

    key: str
    title: str
    kind: str
    attack: str
    passed: bool
    sentence: str

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one control."""
        check_keys(document, place, names(cls))
        if document["kind"] not in ("positive", "negative"):
            raise ArtifactError(f"{place}.kind: positive or negative is expected")
        texts = {
            name: said(document[name], f"{place}.{name}") for name in names(cls) if name != "passed"
        }
        return cls(**texts, passed=truth(document["passed"], f"{place}.passed"))


@dataclass(frozen=True)
class PublicAudit:
    """One audit of the training on a background that was drawn from the run.

    Attributes:
        dpsynth: version that made it.
        model: the generator's name.
        background: where the rows around the canaries came from; always ``run``.
        background_units: how many units they are.
        seed: of background, canaries and coins; the noise has none.
        claim: of the run.
        canaries: how many could be in.
        included: how many were, by a fair coin each.
        views: what each attacker guessed.
        controls: what shows that the attack works.
    """

    dpsynth: str
    model: str
    background: str
    background_units: int
    seed: int
    claim: AuditClaim
    canaries: int
    included: int
    views: tuple[ViewResult, ...]
    controls: tuple[AuditControl, ...]

    @property
    def failures(self) -> list[str]:
        """What speaks against the run or the audit: refuted claims, failed or no controls."""
        refuted = [f"{item.title}: the claim is refuted" for item in self.views if item.refuted]
        failed = [f"control '{item.title}' failed" for item in self.controls if not item.passed]
        unproven = [] if self.controls else ["no control was played"]
        return refuted + failed + unproven

    def to_dict(self) -> dict[str, Any]:
        """Write the audit in JSON types."""
        return dict(_plain(asdict(self)))

    @classmethod
    def from_dict(cls, document: Any, place: str = "audit") -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range.
        """
        check_keys(document, place, names(cls))
        if document["background"] != BACKGROUND:
            raise ArtifactError(
                f"{place}.background: only audits on a background that was drawn from the run are "
                "public"
            )
        canaries = counted(document["canaries"], f"{place}.canaries", minimum=1)
        views = several(
            ViewResult.from_dict, document["views"], f"{place}.views", minimum=1, maximum=2
        )
        if len({view.view for view in views}) < len(views):
            raise ArtifactError(f"{place}.views: {' and '.join(VIEWS)} are expected once")
        controls = f"{place}.controls"
        return cls(
            dpsynth=said(document["dpsynth"], f"{place}.dpsynth"),
            model=said(document["model"], f"{place}.model"),
            background=BACKGROUND,
            background_units=counted(
                document["background_units"],
                f"{place}.background_units",
                minimum=1,
                maximum=_MAX_UNITS,
            ),
            seed=counted(document["seed"], f"{place}.seed", maximum=_MAX_SEED),
            claim=AuditClaim.from_dict(document["claim"], f"{place}.claim"),
            canaries=canaries,
            included=counted(document["included"], f"{place}.included", maximum=canaries),
            views=views,
            controls=several(
                AuditControl.from_dict, document["controls"], controls, maximum=_MAX_CONTROLS
            ),
        )

    def problems(self, certificate: Certificate, model: str) -> list[str]:
        """List what does not fit the run, and figures that its own guesses do not bear out."""
        problems = []
        if (self.claim.epsilon, self.claim.delta) != (certificate.epsilon, certificate.delta):
            problems.append("it is about another claim than the certificate's epsilon and delta")
        if self.model != model:
            problems.append("it is about another model")
        for view in self.views:
            wrong = view.problems(
                self.canaries, self.included, certificate.epsilon, self.claim.delta
            )
            problems += [f"view {view.view}: {problem}" for problem in wrong]
        return problems


def _plain(value: Any) -> Any:
    """Turn tuples into the lists of JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


VIEWS = ("black", "white")
_MAX_RATES = 10


@dataclass(frozen=True)
class AuditSight:
    """The least leak (epsilon) that would have been found; None where none is known."""

    least: float | None
    sentence: str

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly the power of one attacker."""
        check_keys(document, place, names(cls))
        minimum = document["least"]
        return cls(
            least=None if minimum is None else within(minimum, f"{place}.least", HUGE),
            sentence=said(document["sentence"], f"{place}.sentence"),
        )


@dataclass(frozen=True)
class Twin:
    """A twin of the fit that leaks a known epsilon, and what the same attacker proved of it."""

    epsilon: float
    auc: AuditFigure
    proved: float

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what a twin showed."""
        check_keys(document, place, names(cls))
        return cls(
            epsilon=number(document["epsilon"], f"{place}.epsilon", above=0),
            auc=AuditFigure.from_dict(document["auc"], f"{place}.auc"),
            proved=within(document["proved"], f"{place}.proved", MAX_EPSILON),
        )


@dataclass(frozen=True)
class ViewResult:
    """What an attacker with one view guessed, and what the guesses prove.

    Attributes:
        view: ``black`` (what the run keeps) or ``white`` (every noisy release of the fit).
        title: the same in words.
        auc: area under the curve of scores.
        rates: at few false alarms.
        roc: the curve.
        guesses: of which the bound on ``epsilon`` is made.
        correct: right ones among them.
        epsilon: proved at least, with 95 % confidence.
        curve_guesses: of which the bound by trade-off curves is made.
        curve_correct: right ones among them.
        epsilon_fdp: proved at least, by trade-off curves.
        refuted: the claim does not stand.
        sentence: what was found.
        power: what would have been found.
        twin: how that is known.
    """

    view: str
    title: str
    auc: AuditFigure
    rates: tuple[Cut, ...]
    roc: RocFigure
    guesses: int
    correct: int
    epsilon: float
    curve_guesses: int
    curve_correct: int
    epsilon_fdp: float
    refuted: bool
    sentence: str
    power: AuditSight
    twin: Twin | None

    @property
    def proved(self) -> tuple[float, int, int]:
        """The bound on epsilon, and the guesses and right guesses that it is made of."""
        return self.epsilon, self.guesses, self.correct

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what one attacker guessed."""
        check_keys(document, place, names(cls))
        if document["view"] not in VIEWS:
            raise ArtifactError(f"{place}.view: one of {', '.join(VIEWS)} is expected")
        counts = {}
        for total, part in (("guesses", "correct"), ("curve_guesses", "curve_correct")):
            counts[total] = counted(document[total], f"{place}.{total}", minimum=1)
            counts[part] = counted(document[part], f"{place}.{part}", maximum=counts[total])
        twin = document["twin"]
        return cls(
            view=document["view"],
            title=said(document["title"], f"{place}.title"),
            auc=AuditFigure.from_dict(document["auc"], f"{place}.auc"),
            rates=several(Cut.from_dict, document["rates"], f"{place}.rates", maximum=_MAX_RATES),
            roc=RocFigure.from_dict(document["roc"], f"{place}.roc"),
            epsilon=within(document["epsilon"], f"{place}.epsilon", MAX_EPSILON),
            epsilon_fdp=within(document["epsilon_fdp"], f"{place}.epsilon_fdp", MAX_EPSILON),
            refuted=truth(document["refuted"], f"{place}.refuted"),
            sentence=said(document["sentence"], f"{place}.sentence"),
            power=AuditSight.from_dict(document["power"], f"{place}.power"),
            twin=None if twin is None else Twin.from_dict(twin, f"{place}.twin"),
            **counts,
        )

    def problems(self, canaries: int, included: int, epsilon: float, delta: float) -> list[str]:
        """List what the counts cannot be, and figures that the guesses do not bear out."""
        if max(self.guesses, self.curve_guesses) > canaries:
            return ["it guesses about more canaries than there are"]
        problems = []
        if any(
            (cut.tpr.runs, cut.false.runs) != (included, canaries - included) for cut in self.rates
        ):
            problems.append("its rates are about other numbers of canaries")
        first = Guesses(canaries, self.guesses, self.correct, delta)
        second = Guesses(canaries, self.curve_guesses, self.curve_correct, delta)
        if not first.prove(self.epsilon) or second.prove_more(self.epsilon):
            problems.append("its bound on epsilon is not the one that its guesses prove")
        if self.epsilon_fdp > 0 and 2 * self.curve_correct <= self.curve_guesses:
            problems.append("it proves epsilon by guesses that are no better than chance")
        if not self.refuted and (first.refute(epsilon) or second.refute(epsilon)):
            problems.append("its guesses refute the claim, and it says that they do not")
        return problems


MAX_COUNT = 100_000  # canaries, and what else is counted of them
MAX_TEXT_LENGTH = 1_000  # characters of a text
_MAX_POINTS = 100  # of a curve
_NEAR = 1e-3  # of a rate that is written with few digits


@dataclass(frozen=True)
class AuditFigure:
    """A figure with its interval, the number it was computed from, and what it is held against."""

    value: float
    low: float | None
    high: float | None
    n: int
    reference: float | None = None
    chance: float | None = None

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly the area under a curve."""
        check_keys(document, place, names(cls))
        value, low, high, reference, chance = (
            None if document[name] is None else share(document[name], f"{place}.{name}")
            for name in ("value", "low", "high", "reference", "chance")
        )
        if value is None or (low is None) != (high is None):
            raise ArtifactError(f"{place}: a value, and both ends of its interval, are expected")
        if low is not None and high is not None and low > high:
            raise ArtifactError(f"{place}.low is above {place}.high")
        count = counted(document["n"], f"{place}.n", minimum=1)
        return cls(value, low, high, count, reference, chance)


@dataclass(frozen=True)
class Hits:
    """So many hits in so many trials, with the interval of the rate."""

    hits: int
    runs: int
    value: float
    low: float
    high: float

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one rate."""
        check_keys(document, place, names(cls))
        runs = counted(document["runs"], f"{place}.runs", minimum=1)
        hits = counted(document["hits"], f"{place}.hits", maximum=runs)
        value, low, high = (
            share(document[name], f"{place}.{name}") for name in ("value", "low", "high")
        )
        if abs(value - hits / runs) > _NEAR or not low - _NEAR <= value <= high + _NEAR:
            raise ArtifactError(f"{place}: the rate is not that of its hits")
        return cls(hits, runs, value, low, high)


@dataclass(frozen=True)
class Cut:
    """Canaries in and out that score above the cut with so many false alarms at most."""

    fpr: float
    tpr: Hits
    false: Hits

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly the rates at one cut."""
        check_keys(document, place, names(cls))
        return cls(
            fpr=share(document["fpr"], f"{place}.fpr"),
            tpr=Hits.from_dict(document["tpr"], f"{place}.tpr"),
            false=Hits.from_dict(document["false"], f"{place}.false"),
        )


@dataclass(frozen=True)
class RocFigure:
    """A curve: shares of canaries out and in that score above one cut after another."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly a curve; it never falls."""
        check_keys(document, place, names(cls))
        fpr, tpr = (
            several(share, document[name], f"{place}.{name}", maximum=_MAX_POINTS)
            for name in ("fpr", "tpr")
        )
        falls = any(after < before for side in (fpr, tpr) for before, after in pairwise(side))
        if len(fpr) != len(tpr) or falls:
            raise ArtifactError(f"{place}: two lists of equal length that never fall are expected")
        return cls(fpr, tpr)


def counted(value: Any, place: str, *, minimum: int = 0, maximum: int = MAX_COUNT) -> int:
    """Check that a value is a count in range."""
    count = whole(value, place, minimum=minimum)
    if count > maximum:
        raise ArtifactError(f"{place}: a whole number of at most {maximum} is expected")
    return count


def said(value: Any, place: str) -> str:
    """Check that a value is text, and no book."""
    words = text(value, place)
    if len(words) > MAX_TEXT_LENGTH:
        raise ArtifactError(f"{place}: at most {MAX_TEXT_LENGTH} characters are expected")
    return words


def share(value: Any, place: str) -> float:
    """Check that a value is a number from 0 to 1."""
    return within(value, place, 1.0)


def within(value: Any, place: str, maximum: float) -> float:
    """Check that a value is a number from 0 to ``most``."""
    figure = number(value, place, above=-HUGE)
    if not 0 <= figure <= maximum:
        raise ArtifactError(f"{place}: a number from 0 to {maximum:g} is expected")
    return figure


TRIED = 7  # numbers of guesses that an audit tries; they share the error that is allowed
FAILS = 0.05 / TRIED  # of a bound on epsilon
ALARM = 1e-3 / (2 * TRIED)  # of "the claim is refuted", by two bounds
MAX_EPSILON = 40.0  # epsilon, above which an audit makes no difference
TOLERANCE = 1e-3  # of epsilon


@dataclass(frozen=True)
class Guesses:
    """What an attacker got right.

    Attributes:
        canaries: m, each of them in by a fair coin.
        guesses: r of the coins were guessed.
        correct: v guesses were right.
        delta: of the claim.
    """

    canaries: int
    guesses: int
    correct: int
    delta: float

    def chance(self, epsilon: float) -> float:
        """Bound the probability of so many right guesses under (epsilon, delta)."""
        r, v = self.guesses, self.correct
        if v == 0:
            return 1.0
        places = np.arange(r + 1)
        choices = np.concatenate([[0.0], np.log((r - places[1:] + 1) / places[1:]).cumsum()])
        missed = -epsilon - math.log1p(math.exp(-epsilon))  # logarithm of a wrong guess's chance
        law = np.exp(choices + r * missed + places * epsilon)
        below = law[v - 1 :: -1].cumsum() / np.arange(1, v + 1)
        return min(1.0, float(law[v:].sum() + 2 * self.canaries * self.delta * below.max()))

    def prove(self, epsilon: float) -> bool:
        """Say whether this is the largest epsilon that they refute, within `TOLERANCE`."""
        low = epsilon - TOLERANCE
        return (low < 0 or self.chance(low) < FAILS) and not self.prove_more(epsilon)

    def prove_more(self, epsilon: float) -> bool:
        """Say whether they refute a larger epsilon than this, beyond `TOLERANCE`."""
        high = epsilon + TOLERANCE
        return high <= MAX_EPSILON and self.chance(high) < FAILS

    def refute(self, epsilon: float) -> bool:
        """Say whether they refute a claim of this epsilon, by this bound alone."""
        return self.chance(epsilon) < ALARM
