"""What one attacker of a public audit saw and guessed, as ``audit.json`` holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from dpsynth._util.strict_json import HUGE, check_keys, names, number, several, truth
from dpsynth.bundle.format.audit_bounds import MAX_EPSILON, Guesses
from dpsynth.bundle.format.audit_figures import AuditFigure, Cut, RocFigure, counted, said, within
from dpsynth.errors import ArtifactError

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
class View:
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
