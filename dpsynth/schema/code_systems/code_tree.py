"""A list of codes with their parents: the levels at which a column is modelled and emitted.

Level 1 is the top: codes without a parent. A code's group at level n is its ancestor there, or the
code itself if it is no deeper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Self

from dpsynth._util.messages import shown
from dpsynth._util.short_repr import short_repr

MAX_LISTED = 60_000  # codes of a list: a column's codes fit into 16 bits
CODE = "code"  # the level at which every code of the list stands for itself


@dataclass(frozen=True, repr=False)
class CodeTree:
    """Codes in the order of their list.

    Attributes:
        codes: each once.
        parents: of each, ``""`` at the top.
        displays: what each stands for; empty if they are not kept.

    Example:
        >>> tree = CodeTree.of(["I10-I15", "I10", "I11"], ["", "I10-I15", "I10-I15"])
        >>> tree.ancestor("I11", "1"), tree.find(" i11 ")
        ('I10-I15', 'I11')
    """

    codes: tuple[str, ...]
    parents: tuple[str, ...]
    displays: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Say how many there are."""
        return short_repr(self, f"{len(self.codes)} codes")

    @classmethod
    def of(
        cls, codes: Sequence[str], parents: Sequence[str] = (), displays: Sequence[str] = ()
    ) -> Self:
        """Check a list.

        Raises:
            ValueError: there is none, there are too many, one is blank or occurs twice, a parent is
                not listed, or parents make a circle.
        """
        parents = parents or [""] * len(codes)
        if not 0 < len(codes) <= MAX_LISTED:
            raise ValueError(
                f"a list has 1 to {MAX_LISTED:,} codes, this one {len(codes):,}; keep those that "
                "can occur"
            )
        if len(parents) != len(codes) or len(displays) not in (0, len(codes)):
            raise ValueError("codes, parents and displays are equally long lists")
        tree = cls(
            tuple(code.strip() for code in codes),
            tuple(parent.strip() for parent in parents),
            tuple(display.strip() for display in displays),
        )
        for place, code in enumerate(tree.codes):
            if not code or not code.isprintable():
                raise ValueError(f"code {place + 1} of the list is blank or cannot be printed")
            if tree._places[code] != place:
                raise ValueError(f"code {shown(code)} is in the list twice; remove one")
        for code, parent in zip(tree.codes, tree.parents, strict=True):
            if parent and parent not in tree._places:
                raise ValueError(
                    f"the parent {shown(parent)} of code {shown(code)} is not in the list; add it, "
                    "or leave the parent empty"
                )
        tree._check_circles()
        return tree

    def _check_circles(self) -> None:
        done: set[str] = set()
        for code in self.codes:
            path: list[str] = []
            while code and code not in done:
                if code in path:
                    raise ValueError(f"the parents of code {shown(code)} make a circle")
                path.append(code)
                code = self._parent[code]
            done.update(path)

    def chain(self, code: str) -> tuple[str, ...]:
        """Return a code with all above it, the top first."""
        chain = [code]
        while self._parent[chain[-1]]:
            chain.append(self._parent[chain[-1]])
        return tuple(reversed(chain))

    def ancestor(self, code: str, level: str) -> str:
        """Return a code's group at a level such as ``"1"``; at ``"code"``, the code itself."""
        chain = self.chain(code)
        return code if level == CODE else chain[min(int(level), len(chain)) - 1]

    @cached_property
    def depth(self) -> int:
        """Levels of the deepest code."""
        return max(len(self.chain(code)) for code in self.codes)

    @property
    def labels(self) -> Mapping[str, str]:
        """What each code stands for, where that is kept."""
        named = zip(self.codes, self.displays, strict=False)
        return MappingProxyType({code: display for code, display in named if display})

    def find(self, text: str) -> str | None:
        """Return the code that a cell means; None for one that is not listed.

        Blanks around it do not matter. Letter case and points do not either, unless that would make
        two codes of the list one.
        """
        text = text.strip()
        return text if text in self._places else self._spelled.get(_plain(text))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {code: place for place, code in reversed(list(enumerate(self.codes)))}

    @cached_property
    def _parent(self) -> Mapping[str, str]:
        return dict(zip(self.codes, self.parents, strict=True))

    @cached_property
    def _spelled(self) -> Mapping[str, str]:
        first: dict[str, str | None] = {}
        for code in self.codes:
            spelled = _plain(code)
            first[spelled] = None if spelled in first else code
        return {spelled: code for spelled, code in first.items() if code is not None}


def _plain(text: str) -> str:
    return text.upper().replace(".", "").replace(" ", "")
