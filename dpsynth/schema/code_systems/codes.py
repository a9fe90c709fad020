"""The codes of a column: a system, the level that is modelled, and the level that is emitted.

Codes that a fit discovers: what one may look like, and those that a fit has found.

A code that is found is published. A column of codes may also hold a name, a date or a remark that
somebody typed there, so only texts of a declared pattern can be found. The pattern is public, and
it is narrow: letters, digits and a few signs, no blanks, at most `MAX_LENGTH` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.formatting import counted
from dpsynth._util.messages import shown
from dpsynth._util.short_repr import short_repr
from dpsynth.schema.code_systems.code_lists import RollUp, code_list
from dpsynth.schema.code_systems.code_tree import CODE, CodeTree

OTHERS = "\tno group"  # of codes that belong to no group of a published system


@dataclass(frozen=True)
class Codes:
    """A code system, and which of its codes are the categories of a column.

    Attributes:
        system: its name.
        rollup: into which groups codes are put. Of a published system these are the categories.
            With a tree, groups are what is modelled jointly with other columns: a level of the
            tree, or a roll-up of the published system.
        groups: the categories, where a published system has too many to list them all.
        tree: the office's own list of codes.
        emit: the level of the tree that synthetic cells hold.
        several: how a cell holds several codes; None where it holds one.
        discovery: which codes a fit may find, and has found. A code of a published system that is
            not found stands in its group, whose name is then the category. Without a system, the
            codes that are found are all categories.

    Example:
        >>> tree = CodeTree.of(["250.00", "250.01", "401.9"])
        >>> codes = Codes("ICD-9-CM", "chapter", tree=tree)
        >>> codes.categories, codes.group_of
        (('250.00', '250.01', '401.9'), ('endocrine', 'endocrine', 'circulatory'))
        >>> Codes("ICD-9-CM", "chapter").roll_up("401.9")
        'circulatory'
    """

    system: str
    rollup: str
    groups: tuple[str, ...] = ()
    tree: CodeTree | None = None
    emit: str = CODE
    several: Several | None = None
    discovery: Discovery | None = None

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories: codes of one group stand together."""
        if self.discovery is not None:
            return tuple(self._discovered)
        return self._published.categories if self.tree is None else tuple(self._grouped)

    @property
    def labels(self) -> Mapping[str, str]:
        """Category to what it stands for."""
        if self.discovery is not None:
            named = self._published.labels.items() if self.system else ()
            return {group: f"{label}: codes that are not listed" for group, label in named}
        return self._published.labels if self.tree is None else self.tree.labels

    @property
    def group_of(self) -> tuple[str, ...]:
        """The group of each category; empty where categories are the groups."""
        if self.discovery is not None:
            return tuple(self._discovered.values()) if self.system else ()
        return () if self.tree is None else tuple(self._grouped.values())

    def roll_up(self, text: str) -> str | None:
        """Give the category of one cell, None for text that is no code of the system or list.

        Without a system, a code that may be found is given even if it was not, and is no category.
        """
        if self.discovery is not None:
            code = self.discovery.normalised(text)
            if code in self.discovery.known or not self.system:
                return code
            return self._published.roll_up(text)
        if self.tree is None:
            return self._published.roll_up(text)
        code = self.tree.find(text)
        return None if code is None else self.tree.ancestor(code, self.emit)

    def candidate(self, text: str) -> str | None:
        """Return the code that discovery may find in one cell; None if there is none.

        It depends on this cell and on what is declared, and on nothing else.
        """
        code = None if self.discovery is None else self.discovery.normalised(text)
        if code is None or not self.system:
            return code
        group = self._published.roll_up(code)
        return None if group is None or code in self._published.categories else code

    @cached_property
    def _discovered(self) -> Mapping[str, str]:
        """Category to group: the codes of each group that were found, then the group itself."""
        assert self.discovery is not None
        found = self.discovery.found or ()
        if not self.system:
            return dict.fromkeys(found, "")
        members: dict[str, list[str]] = {group: [] for group in self._published.categories}
        for code in found:
            members[self._published.roll_up(code) or OTHERS].append(code)
        return {code: group for group, codes in members.items() for code in (*codes, group)}

    @cached_property
    def _published(self) -> RollUp:
        return code_list(self.system, self.rollup, self.groups)

    @cached_property
    def _grouped(self) -> Mapping[str, str]:
        """Emitted code to group, in the order of groups, and within them of the list."""
        assert self.tree is not None
        emitted = dict.fromkeys(self.tree.ancestor(code, self.emit) for code in self.tree.codes)
        of = {code: self._group(self.tree, code) for code in emitted}
        order = {group: place for place, group in enumerate(dict.fromkeys(of.values()))}
        return dict(sorted(of.items(), key=lambda item: order[item[1]]))

    def _group(self, tree: CodeTree, code: str) -> str:
        if self.rollup.isdigit():
            return tree.ancestor(code, self.rollup)
        return self._published.roll_up(code) or OTHERS


KEYS = ("separator", "most", "ordered")
MAX_PLACES = 20
"""Codes of a cell at most: each place is modelled as a column of its own."""


@dataclass(frozen=True)
class Several:
    """A cell holds a set of codes, or a list of them, each once.

    Attributes:
        separator: the one character between two codes.
        most: codes of a cell at most; public.
        ordered: whether their order means something, as where the principal diagnosis comes first.

    Example:
        >>> Several(";", 3).join(["I10", "J45"]), Several(";", 3, ordered=True).words
        ('I10;J45', "up to 3 codes, separated by ';', in an order that means something")
    """

    separator: str
    most: int
    ordered: bool = False

    def join(self, codes: Iterable[str]) -> str:
        """Write codes as one cell."""
        return self.separator.join(codes)

    def split(self, text: str) -> list[str]:
        """Return the codes of one cell, without blanks around them; empty parts are left out."""
        return [part for raw in text.split(self.separator) if (part := raw.strip())]

    @property
    def words(self) -> str:
        """Say it for a data dictionary."""
        order = "in an order that means something" if self.ordered else "without an order"
        return f"up to {self.most} codes, separated by {shown(self.separator)}, {order}"


def read_several(codes: FieldReader, known: Sequence[str]) -> Several | None:
    """Read ``several`` of a column's codes.

    Args:
        codes: the column's ``codes``.
        known: its categories, which must not hold the separator.

    Returns:
        None where it is not declared, or wrong, which is noted.
    """
    if not codes.has("several"):
        return None
    part = codes.part("several")
    part.refuse_unknown(KEYS)
    separator, most = part.values.get("separator"), part.whole("most", minimum=2)
    ordered = part.flag("ordered", False)
    if not isinstance(separator, str) or len(separator) != 1 or not _separates(separator):
        part.mistake(
            "separator", 'name the one character between two codes, in quotes, such as ";" or "|"'
        )
        return None
    if most is None:
        if not part.has("most"):
            part.gap("most", "is missing: the number of codes of a cell at most, a public number")
        return None
    if most > MAX_PLACES:
        part.mistake("most", f"is {most}; at most {MAX_PLACES} codes of a cell are modelled")
        return None
    if holding := [code for code in known if separator in code]:
        part.mistake(
            "separator",
            f"{shown(separator)} is part of {counted(len(holding), 'code')} of the list, such as "
            f"{shown(holding[0])}; codes are cut apart there, so choose another",
        )
        return None
    return Several(separator, most, ordered)


def _separates(character: str) -> bool:
    return character in ("\t", " ") or (
        character.isprintable() and not character.isalnum() and character not in ".'\""
    )


MAX_LENGTH = 20  # characters of a code
MAX_PATTERN = 200  # characters
MAX_VARIABLE = 6  # parts of a pattern that may have several lengths: more are slow to match
MAX_EITHER = 10  # signs for "or"
MOST, EXPECTED = 2000, 1000
MAX_FOUND = 20_000  # of a column
LEAST_DIGITS = 6  # of a number that may be a patient's

PATTERNS = MappingProxyType(
    {
        "ICD-9-CM": r"([0-9]{1,3}|V[0-9]{2}|E[0-9]{3})(\.[0-9]{1,2})?",
        "ICD-10-CM": r"[A-Z][0-9][0-9AB](\.?[0-9A-Z]{1,4})?",
        "ICD-10-GM": r"[A-Z][0-9]{2}(\.[0-9]{1,2})?",
        "ATC": r"[A-Z][0-9]{2}[A-Z]([A-Z]([0-9]{2})?)?",
    }
)
"""Of the published systems, unless a column declares its own."""

# One part of a pattern: a character or a set of them, with how often; or a group, or "or".
_ONE = r"(?:\\\.|[A-Za-z0-9_/:-]|\[[A-Za-z0-9._/:-]+\])"
_PART = re.compile(
    rf"{_ONE}(?P<often>\?|\{{[0-9]{{1,2}}(,[0-9]{{1,2}})?\}})?|\((\?:)?|\)(?P<group>\??)|(?P<either>\|)"
)
_SIGNS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*")
_WORDS = (
    *("Maria", "Johnson", "SCHMIDT", "anna", "Nguyen", "LI", "Meier-Schulz", "unknown"),
    *("1975-03-12", "12.03.1975", "12/03/1975"),
)
_RESERVED = frozenset({"other", "missing"})


@dataclass(frozen=True, repr=False)
class Discovery:
    r"""Which codes of a column a fit may find.

    Attributes:
        pattern: a regular expression that a code fits as a whole.
        most: how many codes are kept at most; of more, those with the largest noisy counts.
        expected: how many different codes occur, about: for the outlook of a plan alone.
        found: by a fit, in ascending order; None before it.

    Example:
        >>> codes = Discovery(r"[A-Z][0-9]{2}(\.[0-9]{1,2})?")
        >>> codes.normalised(" e11.9 "), codes.normalised("Maria")
        ('E11.9', None)
    """

    pattern: str
    most: int = MOST
    expected: int = EXPECTED
    found: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        """Say how many were found."""
        count = "none yet" if self.found is None else f"{len(self.found)} found"
        return short_repr(self, count)

    def normalised(self, text: str) -> str | None:
        """Return the code that a cell is; None if it does not fit the pattern.

        Blanks around it do not matter. If the pattern has no small letters, neither does case.
        """
        text = text.strip()
        if self.pattern == self.pattern.upper():
            text = text.upper()
        if len(text) > MAX_LENGTH or text.lower() in _RESERVED or not _SIGNS.fullmatch(text):
            return None
        return text if self._compiled.fullmatch(text) else None

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.ASCII)

    @cached_property
    def known(self) -> frozenset[str]:
        """The codes that were found."""
        return frozenset(self.found or ())


def fits_record_numbers(pattern: str) -> int | None:
    """Return how many digits in a row fit a pattern; None if no number of 6 digits or more does.

    Numbers of patients and stays look so, and they may stand in a column of codes by mistake.

    >>> fits_record_numbers("[0-9]{8}"), fits_record_numbers(PATTERNS["ICD-10-CM"])
    (8, None)
    """
    free = Discovery(pattern)
    sizes = range(LEAST_DIGITS, MAX_LENGTH + 1)
    return next((size for size in sizes if free.normalised(("1234567890" * 2)[:size])), None)


def check_pattern(pattern: str) -> str:
    """Return a pattern that codes, and nothing but codes, can fit.

    Raises:
        ValueError: it cannot be read, or people's names, dates or free text could fit it.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN} characters")
    place, variable, either = 0, 0, 0
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None:
            raise ValueError(
                "a pattern of codes has letters, digits, the signs _ / : - and \\. , sets such as "
                "[A-Z], groups in parentheses, | for or, and ?, {3} or {1,4} for how often; "
                "nothing else, because free text could fit it"
            )
        often = part["often"] or ""
        variable += "," in often or "?" in (often, part["group"])
        either += part["either"] is not None
        place = part.end()
    if variable > MAX_VARIABLE or either > MAX_EITHER:
        raise ValueError(
            f"a pattern has at most {MAX_VARIABLE} parts whose length may vary, and {MAX_EITHER} |"
        )
    try:
        compiled = re.compile(pattern, re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError("the pattern cannot be read: check its parentheses and sets") from error
    if compiled.fullmatch(""):
        raise ValueError("the empty text fits the pattern; a code has a character at least")
    free = Discovery(pattern)
    if any(free.normalised(word) is not None for word in _WORDS):
        raise ValueError(
            "names or dates fit the pattern, and a code that is found is published; write it more "
            r"narrowly, such as [A-Z][0-9]{2}(\.[0-9]{1,2})?"
        )
    return pattern
