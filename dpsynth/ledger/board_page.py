"""The ledger as one page for a board: plain words first, then a picture of every cap, every fit.

The page is a single file without script, and asks no network for anything. Every text that a person
wrote is escaped, set apart from its surroundings (so that right-to-left letters reorder nothing
else), and rid of invisible characters.

The ledger for those who do not run dpsynth: one JSON document, or one page for a board.

Both are internal: they name people, and say when what was fitted on whose data. Neither holds the
ledger's key or the keyed digests of files that were read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from pathlib import Path

from jinja2 import Environment

from dpsynth._util.html import environment
from dpsynth._util.strict_json import written
from dpsynth.errors import InputError
from dpsynth.files import check_apart, write_atomically
from dpsynth.ledger import Adopted, LedgerFile
from dpsynth.ledger.balances import Account, Snapshot, explained
from dpsynth.ledger.entry import CHARGED, Entry
from dpsynth.policy import Cap, CapUsage, Policy
from dpsynth.policy.rules import OVERALL, ROLLING, SINGLE, YEAR
from dpsynth.privacy import described, exactly

WIDTH, HEIGHT = 1000.0, 100.0  # of every picture, in its own units
_TITLES = {
    SINGLE: "Each single release",
    ROLLING: "In the last 365 days",
    OVERALL: "In total, since the ledger began",
}
_MIN_SPAN = timedelta(days=14)  # a shorter line shows nothing


@dataclass(frozen=True)
class Bar:
    """A cap as a bar: filled up to ``used``, striped from the cap to ``used`` where it is passed.

    Attributes:
        title: which cap.
        figures: what is used and left, in words; also the picture's alternative.
        notes: more sentences.
        cap: where the cap lies, from 0 to WIDTH.
        filled: where the filled part ends.
        over: where the striped part ends; the same as ``cap`` if the cap is kept.
        single: whether the cap is on each fit alone, and the picture of the largest one.
    """

    title: str
    figures: str
    notes: tuple[str, ...]
    cap: float
    filled: float
    over: float
    single: bool

    @property
    def share(self) -> float:
        """Used part of the cap; above 1 where it is passed."""
        return max(self.filled, self.over if self.over > self.cap else 0.0) / self.cap


@dataclass(frozen=True)
class UsageCurve:
    """Epsilon against time as a step line, with the cap as a dashed one; heights from the top."""

    title: str
    summary: str
    line: str
    cap: float | None
    limit: str
    end: float
    used: str
    first: str
    last: str


@dataclass(frozen=True)
class Budget:
    """An account with its pictures; those of one tier's caps are apart."""

    account: Account
    bars: tuple[Bar, ...]
    tier_bars: tuple[Bar, ...]
    curves: tuple[UsageCurve, ...]


def page(snapshot: Snapshot) -> str:
    """Return the page of a ledger as HTML."""
    state, policy = snapshot.state, snapshot.state.policy
    budgets = [_budget(snapshot, account) for account in snapshot.accounts]
    return (
        _environment()
        .get_template("ledger.html")
        .render(
            snapshot=snapshot,
            state=state,
            policy=policy,
            adopted=state.adopted[-1] if policy else None,
            earlier=list(zip(state.adopted, state.adopted[1:], strict=False))[::-1],
            budgets=budgets,
            summed=sorted(_summed(budgets), key=lambda pair: -pair[1].share),
            waiting=[entry for entry in state.entries if _waits(entry, policy)],
            entries=state.entries[::-1],
        )
    )


def figure(value: float) -> str:
    """Write a number as `dpsynth ledger show` does, without zeros in the exponent."""
    mantissa, mark, exponent = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else mantissa


def factor(epsilon: float) -> str:
    """Give the largest factor by which a chance may change, rounded up to three digits."""
    if epsilon > math.log(1e6):
        return "over a million"
    value = math.exp(epsilon)
    digits = 2 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits) / 10.0**digits:,.{max(0, digits)}f}"


def one_in(delta: float) -> str:
    """Say a small chance in words; never a smaller chance than it is."""
    return f"1 in {math.floor(Fraction(1) / exactly(delta)):,}"


def day(at: str | datetime) -> str:
    """Give the date of a time."""
    return (at if isinstance(at, str) else at.isoformat())[:10]


def caps_of(policy: Policy) -> list[tuple[str, Cap | None]]:
    """List every bound on epsilon in a policy; None where a general one is not set."""
    rows: list[tuple[str, Cap | None]] = [
        ("Each single release, at most", policy.caps.release),
        ("Any period of 365 days, at most", policy.caps.year),
        ("All releases together, at most", policy.caps.total),
    ]
    for tier in policy.tiers:
        caps = (
            ("each single release, at most", tier.caps.release),
            ("any period of 365 days, at most", tier.caps.year),
            ("all releases together, at most", tier.caps.total),
            ("each single release, at least", tier.least),
        )
        rows += [(f"Tier {tier.name}: {words}", cap) for words, cap in caps if cap is not None]
    return rows


@cache
def _environment() -> Environment:
    templates = environment(__package__)
    templates.filters |= {
        "figure": figure,
        "factor": factor,
        "one_in": one_in,
        "day": day,
    }
    templates.globals |= {"caps_of": caps_of, "explained": explained, "brief": _brief}
    templates.globals["described"] = described
    return templates


def _budget(snapshot: Snapshot, account: Account) -> Budget:
    bars = [(meter, _bar(meter, account, snapshot.at)) for meter in account.meters]
    summed: list[CapUsage | None] = [m for m in account.meters if m.name in (ROLLING, OVERALL)]
    curves = [_curve(snapshot, account, meter) for meter in summed or [None]]
    return Budget(
        account,
        tuple(bar for meter, bar in bars if meter.name in _TITLES),
        tuple(bar for meter, bar in bars if meter.name not in _TITLES),
        tuple(curve for curve in curves if curve is not None),
    )


def _bar(meter: CapUsage, account: Account, now: datetime) -> Bar:
    kind = next(kind for kind in _TITLES if meter.name.endswith(kind))
    prefix = meter.name.removesuffix(kind)
    tier = prefix.removeprefix("tier ").removesuffix(": ").lower()
    fits = [e for e in account.entries if e.counts and tier in ("", (e.tier or "").lower())]
    title = (prefix + _TITLES[kind].lower() if prefix else _TITLES[kind]).replace("tier", "Tier", 1)
    notes = []
    if kind == SINGLE:
        # No release adds to another here: the picture is of the largest.
        meter = replace(meter, used=max((entry.cost[0] for entry in fits), default=0.0))
        figures = f"cap {figure(meter.limit)}; no fit yet"
        if fits:
            figures = f"cap {figure(meter.limit)}; the largest fit so far used {figure(meter.used)}"
        if meter.used > meter.limit:
            notes.append("That fit was entered under an earlier policy.")
    else:
        figures = _figures(meter)
        if 0 < meter.used < math.inf:
            notes.append(
                "The probability of any result can change by at most a factor of "
                f"{factor(meter.used)}."
            )
    ended = [datetime.fromisoformat(entry.ended) for entry in fits if entry.ended is not None]
    if kind == ROLLING and (leaving := [at + YEAR for at in ended if at + YEAR > now]):
        notes.append(f"The oldest of these fits stops counting on {day(min(leaving))}.")
    if kind == ROLLING and (still := len(fits) - len(ended)):
        subject = (
            "1 fit that can still spend budget counts until 365 days after it ends"
            if still == 1
            else f"{still} fits that can still spend budget count until 365 days after they end"
        )
        notes.append(f"{subject}.")
    top = max(meter.limit, meter.used) if meter.used < math.inf else 1.25 * meter.limit
    cap, used = meter.limit / top * WIDTH, min(meter.used, top) / top * WIDTH
    ends = (cap, min(used, cap), max(used, cap))
    return Bar(title, figures, tuple(notes), *ends, single=kind == SINGLE)


def _figures(meter: CapUsage) -> str:
    limit, rest = figure(meter.limit), figure(meter.left)
    if meter.used == 0:
        return f"0 of {limit} used, {limit} left"
    if meter.used == math.inf:
        return (
            f"more than the whole cap of {limit} used, because the deltas exceed the policy's "
            "delta; nothing is left"
        )
    if meter.used > meter.limit:
        over = figure(meter.used - meter.limit)
        return f"{figure(meter.used)} of {limit} used, over the cap by {over}; nothing is left"
    return f"{figure(meter.used)} of {limit} used, {rest} left"


def _curve(snapshot: Snapshot, account: Account, meter: CapUsage | None) -> UsageCurve | None:
    """Draw what was used of a cap at each time, or the plain sum where nothing is capped."""
    history = snapshot.history(account, meter)
    if not history or snapshot.at - history[0][0] < _MIN_SPAN:
        return None
    return _drawn(history, meter, snapshot.at)


def _drawn(
    history: Sequence[tuple[datetime, float]], meter: CapUsage | None, now: datetime
) -> UsageCurve:
    (first, _), (_, used) = history[0], history[-1]
    finite = [value for _, value in history if value < math.inf]
    limit = None if meter is None else meter.limit
    top = 1.1 * max([*finite, limit or 0.0])
    start = first - 0.03 * (now - first)

    def x(at: datetime) -> float:
        return min(1.0, (at - start) / (now - start)) * WIDTH

    def y(value: float) -> float:
        return HEIGHT - min(value, top) / top * HEIGHT

    steps = "".join(f"H{x(at):.1f}V{y(value):.1f}" for at, value in history)
    last = "more than the cap" if used == math.inf else figure(used)
    title = "Sum of epsilon" if meter is None else f"Used: {_TITLES[meter.name].lower()}"
    dashed = "no cap applies" if limit is None else f"the dashed line is the cap of {figure(limit)}"
    return UsageCurve(
        title=title,
        summary=f"{title}, from {day(first)} to {day(now)}, ends at {last}; {dashed}",
        line=f"M0,{HEIGHT:.1f}{steps}H{WIDTH:.1f}",
        cap=None if limit is None else y(limit),
        limit="" if limit is None else figure(limit),
        end=y(used),
        used=last,
        first=day(first),
        last=day(now),
    )


def _summed(budgets: Sequence[Budget]) -> list[tuple[str, Bar]]:
    """Bars of caps on several fits together, with the name of their account."""
    bars = [(b.account.name, bar) for b in budgets for bar in b.bars + b.tier_bars]
    return [(name, bar) for name, bar in bars if not bar.single]


def _waits(entry: Entry, policy: Policy | None) -> bool:
    """Whether a fit that ended well lacks signatures for its release."""
    needed = 0 if policy is None else policy.sign_off
    return entry.status == CHARGED and not entry.releases and len(entry.signatures) < needed


def _brief(adopted: Adopted) -> str:
    """Say the caps of a policy in one line."""
    caps = [f"{name.lower()} {figure(cap.epsilon)}" for name, cap in caps_of(adopted.policy) if cap]
    return "; ".join([*caps, f"delta {figure(adopted.policy.delta)}"])


def exported(
    ledger: LedgerFile, output: str | Path, *, html: bool = False, now: datetime | None = None
) -> Path:
    """Write a ledger into one file that only its owner can read; an existing file is replaced.

    Args:
        ledger: what to write.
        output: the file.
        html: a page for a board, in the place of JSON.
        now: the moment that it is about, with its time zone; default: this one. The same ledger
            and moment give the same bytes as long as no fit's process ends meanwhile.

    Raises:
        InputError: the file cannot be written, is a folder, or is the ledger itself.
        BudgetError: the ledger was changed by something else than dpsynth.
    """
    target = Path(output)
    if os.path.isdir(target):  # a root has no name that a temporary file could be named after
        raise InputError(f"cannot write {target}: it is a folder; name a file")
    if ledger.store.database.is_file(target):
        raise InputError(f"{target} is the ledger itself; name another file for the export")
    snapshot = Snapshot.of(ledger, now or datetime.now(UTC))
    if html:
        content = page(snapshot).encode()
    else:
        content = written(snapshot.to_dict())
    check_apart(target)
    write_atomically(target, content, private=True)
    return target
