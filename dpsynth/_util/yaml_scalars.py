"""Plain words of a YAML file that its versions read differently: they are refused, never guessed.

PyYAML reads YAML 1.1, most other programs read 1.2. What is text to one may be a number or a truth
value to the other: ``no`` (the country), ``008`` (a code), ``1:20`` (a time: 80 to YAML 1.1).
"""

from __future__ import annotations

import re
from typing import Any

from dpsynth._util.messages import shown

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)(e[-+][0-9]+)?|\.(inf|nan))", re.IGNORECASE)
_NUMBER_ELSEWHERE = re.compile(r"[-+]?(0[0-9_]+|0[xob][0-9a-f_]+)", re.IGNORECASE)
_TRUTHS = ("true", "false")


def ambiguity(node: Any) -> str | None:
    """Say what is wrong with a scalar that versions of YAML read differently; None if they agree.

    A number with an exponent and without a point (``1e-6``), which is text to YAML 1.1, is left to
    those who read it: where a number is due, they take it for one.

    Args:
        node: a scalar as PyYAML's loader composed it, with the tag that it resolved.
    """
    if node.style:  # in quotes, or a block: text to everybody
        return None
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "bool" and text.lower() not in _TRUTHS:
        return (
            f"{shown(text)} is a truth value to some readers of YAML and text to others; write "
            "true or false, or put it in quotes"
        )
    number = (
        (kind == "int" and not _WHOLE.fullmatch(text))
        or (kind == "float" and not _DECIMAL.fullmatch(text))
        or (kind == "str" and _NUMBER_ELSEWHERE.fullmatch(text))
    )
    if number:
        return (
            f"{shown(text)} is read as different numbers, or as text, by readers of YAML; write a "
            "number plainly (such as 80, 0.5 or 1.0e-6), or put text in quotes"
        )
    return None
