"""A grouping: a column that is the group of another column's code, such as its chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpsynth.schema.code_systems import Codes, code_list, first_codes, rollups_of

NO_GROUP = "other"  # of a category that belongs to no group


@dataclass(frozen=True)
class Grouping:
    """A column that follows from a column of codes.

    Attributes:
        base: the column of codes.
        level: a level of its list, counted from the top, or a roll-up of its system.
    """

    base: str
    level: str

    @property
    def words(self) -> str:
        """Say it in a few words."""
        named = f"level {self.level}" if self.level.isdigit() else self.level
        return f"{named} of {self.base}"

    def groups(self, codes: Codes | None, categories: Sequence[str]) -> Mapping[str, str]:
        """Return the group of each category that a cell of the base can hold.

        Args:
            codes: of the base.
            categories: its levels.

        Raises:
            InputError: the system has no such roll-up.
            ValueError: the base has no codes, or its list has no such level; says what to do.

        >>> codes = Codes("ICD-10-CM", "block")
        >>> Grouping("diagnosis", "chapter").groups(codes, codes.categories)["E08-E13"]
        'endocrine'
        """
        if codes is None:
            raise ValueError(f"column {self.base!r} has no codes; declare them: dpsynth.codes")
        group = self._group_of(codes)
        return {category: group(category) or NO_GROUP for category in categories}

    def labels(self, codes: Codes | None) -> Mapping[str, str]:
        """Return what the groups stand for, where that is known."""
        if codes is None:
            return {}
        if not self.level.isdigit():
            return code_list(codes.system, self.level).labels
        return {} if codes.tree is None else codes.tree.labels

    def _group_of(self, codes: Codes) -> Callable[[str], str | None]:
        tree = codes.tree
        if not self.level.isdigit():
            known = rollups_of(codes.system)
            if self.level not in known:
                words = ", ".join(known) or "none: name a level of the list, such as 1"
                raise ValueError(f"{codes.system} has no roll-up {self.level!r}; known: {words}")
            if tree is None and known.index(self.level) > known.index(codes.rollup):
                raise ValueError(
                    f"{self.level} is finer than {codes.rollup}, which cells of {self.base!r} hold"
                )
            published = code_list(codes.system, self.level)

            def rolled(category: str) -> str | None:
                first = category.partition("-")[0]  # of a block such as E08-E13
                named = first_codes(codes.system).get(category, first)
                return published.roll_up(category) or published.roll_up(named)

            return rolled
        if tree is None:
            raise ValueError(
                f"level {self.level} is that of a list, and column {self.base!r} has none; name a "
                f"roll-up: {', '.join(rollups_of(codes.system))}"
            )
        deepest = int(codes.emit) if codes.emit.isdigit() else tree.depth
        if not 1 <= int(self.level) <= deepest:
            raise ValueError(f"cells of {self.base!r} have levels 1 to {deepest}")
        return lambda category: tree.ancestor(category, self.level) if tree.find(category) else None
