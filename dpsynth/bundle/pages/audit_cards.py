"""Audits as the public page shows them: a card each, figures rounded to the careful side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import at_most, figure
from dpsynth.bundle.format import Audits, ViewResult
from dpsynth.bundle.format.audits import PublicAudit

_ROW, _EDGE = 34.0, 6.0  # of the picture: height of a row, room at both ends of the axis
MANY = 10_000  # canaries, as many as an audit takes
_SEES = {
    "black": "What the fit keeps: the model that synthetic tables are drawn from",
    "white": "Every noisy result of the fit, including results that are never published",
}
_NAMES = {"black": "What the fit keeps", "white": "Every noisy result"}


@dataclass(frozen=True)
class Attacker:
    """A row of an audit's table.

    Attributes:
        name: of the view, short.
        sees: what the attacker had to guess from.
        guesses: how many coins were guessed.
        correct: right ones.
        chance: right ones that blind guesses would bring.
        proved: epsilon at least, rounded down.
        least: the least leak that would have been seen, rounded up; None where none is known.
        sentence: the same in words.
        blind: that it could have seen no leak here, and what to change; empty where it could.
    """

    name: str
    sees: str
    guesses: int
    correct: int
    chance: str
    proved: str
    least: str | None
    sentence: str
    blind: str = ""

    @classmethod
    def of(cls, view: ViewResult, audit: PublicAudit) -> Attacker:
        """Word what one attacker did."""
        proved, guesses, correct = view.proved
        minimum = view.power.least
        return cls(
            name=_NAMES[view.view],
            sees=_SEES[view.view],
            guesses=guesses,
            correct=correct,
            chance=f"{guesses / 2:,g}",
            proved=at_least(proved),
            least=None if minimum is None else at_most(minimum),
            sentence=view.power.sentence,
            blind=_blind(view, audit),
        )


def attackers(audit: PublicAudit) -> tuple[Attacker, ...]:
    """Return the attackers of an audit, in order."""
    return tuple(Attacker.of(view, audit) for view in audit.views)


def _blind(view: ViewResult, audit: PublicAudit) -> str:
    """Say that an attacker could have seen no leak, by the same rule as the internal page.

    It missed a leak that was made on purpose for it, or no leak is known that it would have seen.
    """
    controls = [control for control in audit.controls if control.attack == f"training:{view.view}"]
    missed = any(not one.passed for one in controls if one.kind == "positive")
    if view.refuted or (not missed and view.power.least is not None):
        return ""
    count = f"{audit.canaries:,}"
    change = f"plant more canaries than {count} (--canaries)"
    if audit.canaries >= MANY:
        change = "no more canaries can be planted; a leak of this size stays unseen"
    return f"could have seen no leak here. What to change: {change}"


@dataclass(frozen=True)
class AuditCard:
    """An audit on the page: the audit, its attackers, and a picture of what they proved."""

    audit: PublicAudit
    attackers: tuple[Attacker, ...]
    picture: Markup


def audit_cards(audits: Audits) -> list[AuditCard]:
    """Prepare every audit, in order."""
    return [
        AuditCard(one, attackers(one), _picture(f"audit-{place}-picture", one))
        for place, one in enumerate(audits.audits, start=1)
    ]


def at_least(value: float) -> str:
    """Write a lower bound rounded down to three digits that matter.

    >>> at_least(2.99764), at_least(0.0), at_least(12.0)
    ('2.99', '0', '12')
    """
    return figure(float(Context(3, ROUND_FLOOR).create_decimal_from_float(value)))


def _picture(key: str, audit: PublicAudit) -> Markup:
    """Draw, for each view, a bar up to what is proved, and marks at the other two figures."""
    claimed = audit.claim.epsilon
    sights = [one.power.least for one in audit.views if one.power.least is not None]
    longest = 1.05 * max([claimed, *sights, *(one.proved[0] for one in audit.views)])
    content = Markup("")
    for place, view in enumerate(audit.views):
        content += _row(place * _ROW, view, claimed, longest)
    base = len(audit.views) * _ROW + 4
    content += Markup('<path class="axis" d="{}"/>').format(_axis(base, longest))
    for value in _ticks(longest):
        content += Markup('<text x="{:g}" y="{:g}" text-anchor="middle">{}</text>').format(
            _x(value, longest), base + 18, figure(value)
        )
    content += Markup('<text x="{:g}" y="{:g}" text-anchor="end">epsilon</text>').format(
        svg.WIDTH, base + 18
    )
    title = f"Epsilon that each attacker proved, on an axis with the claim of {figure(claimed)}"
    return svg.picture(key, title, base + 24, content)


def _row(top: float, view: ViewResult, claimed: float, longest: float) -> Markup:
    """Draw one attacker: a label, a bar, an open square, a stroke."""
    start, middle = _x(0, longest), top + 24
    length = max(_x(view.proved[0], longest) - start, 0.0)
    content = Markup('<text x="0" y="{:g}">{}</text>').format(top + 13, _NAMES[view.view])
    content += Markup(
        '<rect class="track" x="{0:g}" y="{1:g}" width="{2:g}" height="8"/>'
        '<rect class="mark" x="{0:g}" y="{1:g}" width="{3:g}" height="8"/>'
    ).format(start, middle - 4, round(svg.WIDTH - _EDGE - start, 1), round(length, 1))
    if view.power.least is not None:
        x = _x(view.power.least, longest)
        content += Markup('<path class="least" d="M{:g},{:g}h10v10h-10z"/>').format(
            round(x - 5, 1), middle - 5
        )
    return content + Markup('<path class="claimed" d="M{:g},{:g}v16"/>').format(
        _x(claimed, longest), middle - 8
    )


def _axis(base: float, longest: float) -> str:
    """Return the path of the axis with its strokes."""
    strokes = "".join(f"M{_x(value, longest):g},{base:g}v4" for value in _ticks(longest))
    return f"M{_x(0, longest):g},{base:g}H{svg.WIDTH - _EDGE:g}{strokes}"


def _ticks(longest: float) -> list[float]:
    """Return at most six round values that lie apart from the name of the axis."""
    unit = 10.0 ** math.floor(math.log10(longest))
    step = next(unit * part for part in (0.2, 0.5, 1, 2) if longest <= 6 * unit * part)
    return [step * place for place in range(int(0.8 * longest / step) + 1)]


def _x(value: float, longest: float) -> float:
    """Place a value on the axis."""
    return round(_EDGE + (svg.WIDTH - 2 * _EDGE) * min(max(value / longest, 0.0), 1.0), 1)
