"""The codes of a column: a system, the level that is modelled, and the level that is emitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dpsynth.schema.code_systems.code_lists import RollUp, code_list
from dpsynth.schema.code_systems.code_tree import CODE, CodeTree
from dpsynth.schema.code_systems.discovery import Discovery
from dpsynth.schema.code_systems.several import Several

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
