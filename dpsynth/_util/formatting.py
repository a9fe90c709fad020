"""Numbers and names as pages show them: short, honest when rounded, nothing invisible."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Context
from fractions import Fraction

_OF_ONE = {"are": "is", "were": "was", "have": "has", "do": "does", "would": "would"}
_NOUNS = re.compile(r"(like )?(day |declared )?(dates|times|numbers|codes|limits)\b")
_MAX_DECIMALS = 4
_FINEST = 12  # decimals


def shown(text: object) -> str:
    """Name each invisible character, and make one line of several.

    >>> shown("pilot" + chr(0x202E) + " 2026")
    'pilot[U+202E] 2026'
    """
    return "".join(
        c if c.isprintable() else " " if c.isspace() else f"[U+{ord(c):04X}]" for c in str(text)
    )


def plural(noun: str) -> str:
    """Write the plural of a regular noun, also where words follow it.

    >>> plural("row"), plural("value of column 'key'")
    ('rows', "values of column 'key'")
    """
    first, of, rest = noun.partition(" of ")
    return f"{first}s{of}{rest}"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun.

    >>> counted(1, "row"), counted(2400, "row")
    ('1 row', '2,400 rows')
    """
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def agreeing(count: int, words: str) -> str:
    """Put what is said of several things, which begins with a verb, into the form for a count.

    >>> agreeing(2, "are dates; a fit drops them"), agreeing(1, "are dates; a fit drops them")
    ('are dates; a fit drops them', 'is a date; a fit drops it')
    >>> agreeing(1, "agree with a key"), agreeing(1, "below the minimum are a code")
    ('agrees with a key', 'below the minimum is a code')
    """
    if count != 1:
        return words
    verb, _, rest = words.partition(" ")
    if verb not in _OF_ONE and re.search(r"^\S+ the \S+ (are|would) ", words):
        return words.replace(" are ", " is ", 1)
    noun = _NOUNS.match(rest)
    if noun is not None and verb in ("are", "look"):
        like, adjective, word = noun.groups(default="")
        rest = f"{like}a {adjective}{word[:-1]}{rest[noun.end() :]}"
    for several, one in (("them", "it"), ("their", "its"), ("that were", "that was")):
        rest = re.sub(rf"\b{several}\b", one, rest)
    return f"{_OF_ONE.get(verb, verb + 's')} {rest}"


def figure(value: float) -> str:
    """Write a number with at most four digits that matter; whole ones in full, with commas.

    >>> figure(2.99764), figure(9000), figure(0.00001), figure(-0.0)
    ('2.998', '9,000', '1e-5', '0')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    mantissa, mark, exponent = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else mantissa


def quantity(value: float) -> str:
    """Write a number in full, never with a power of ten, with at least four digits that matter.

    >>> quantity(19447.31), quantity(27.25), quantity(0.00012345), quantity(-3.0), quantity(1e-30)
    ('19,447', '27.25', '0.0001234', '-3', '0')
    """
    digits = 0 if value == 0 else math.floor(math.log10(abs(value)))
    text = f"{value:,.{min(max(0, 3 - digits), _FINEST)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def percent(share: float) -> str:
    """Write a share; one that is not 0 or 1 is never shown as nothing or all.

    >>> percent(0.1234), percent(0.0), percent(0.0002), percent(0.9999), percent(1.0)
    ('12.3 %', '0 %', 'under 0.1 %', 'over 99.9 %', '100 %')
    """
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    if share < 0.0005:
        return "under 0.1 %"
    if share >= 0.9995:
        return "over 99.9 %"
    return f"{100 * share:.1f} %"


def figure_at_most(value: float) -> str:
    """Write a bound with at most four digits that matter, never rounded downwards.

    >>> figure_at_most(2.99849), figure_at_most(3.0), figure_at_most(1e-6)
    ('2.999', '3', '1e-6')
    """
    return figure(float(Context(4, ROUND_CEILING).create_decimal_from_float(value)))


def percent_at_least(share: float) -> str:
    """Write the least of a chance, rounded down.

    >>> percent_at_least(0.42556), percent_at_least(0.5), percent_at_least(0.0002)
    ('42.5 %', '50 %', '0 %')
    """
    return f"{math.floor(1000 * Fraction(share)) / 10:g} %"


def percent_at_most(share: float) -> str:
    """Write a bound on a chance, rounded up, with as many decimals as keep it below 100 %.

    >>> percent_at_most(0.75), percent_at_most(0.9525), percent_at_most(0.9999546)
    ('75 %', '95.3 %', '99.996 %')
    >>> percent_at_most(1 - 1e-9), percent_at_most(1.0)
    ('almost 100 %', '100 %')
    """
    if share >= 1:
        return "100 %"
    exact = 100 * Fraction(share)
    for decimals in range(1, _MAX_DECIMALS + 1):
        value = math.ceil(exact * 10**decimals - Fraction(1, 10**6)) / 10**decimals
        if value < 100:
            return f"{value:.{decimals}f}".rstrip("0").rstrip(".") + " %"
    return "almost 100 %"


def one_in(chance: float) -> str:
    """Say a small chance in words; never a smaller chance than it is.

    >>> one_in(1e-6)
    '1 in 1,000,000'
    """
    return f"1 in {math.floor(1 / Fraction(repr(chance))):,}"


def at_most(value: float) -> str:
    """Write a bound rounded up to three digits that matter.

    >>> at_most(2.99764), at_most(20.0855), at_most(22026.4658), at_most(1e9), at_most(3.0)
    ('3', '20.1', '22,100', 'over a million', '3')
    """
    if value > 1e6:
        return "over a million"
    if value <= 0:
        return "0"
    digits = 2 - math.floor(math.log10(value))
    scale = Fraction(10) ** digits
    rounded = math.ceil(Fraction(repr(value)) * scale) / scale
    text = f"{float(rounded):,.{max(0, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
