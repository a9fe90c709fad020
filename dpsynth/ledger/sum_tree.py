"""Sums over spendings, kept in a tree whose root the ledger's chain seals.

Each node is stored under the SHA-256 of its own text and is never changed: a new spending stores
the few nodes on its way to the root anew. A record of the ledger holds the hash of the root, so a
node that was forged, or put back from earlier, does not have the hash that is asked for.

The shape is a function of the leaves alone, whatever the order in which they came: a node of at
most `BUCKET` leaves holds them all; a larger one branches by the first digit in which their keys
differ. Keys are of one length, in hexadecimal digits; the fewer digits they use, the smaller are
nodes, and the higher the tree. Ralph Merkle, A Digital Signature Based on a Conventional
Encryption Function, CRYPTO 1987, describes such trees.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from os.path import commonprefix
from typing import Any, Protocol

import sqlalchemy as sa

from dpsynth.errors import BudgetError
from dpsynth.ledger import Store
from dpsynth.ledger.store import STATE
from dpsynth.privacy import Spend, Total

BUCKET = 4
EMPTY = ""
"""The root of a tree without leaves."""
_BEYOND = "g"  # sorts after every hexadecimal digit


class Nodes(Protocol):
    """Where nodes are stored, each under the SHA-256 of its text."""

    def read(self, name: str) -> Any:
        """Return a node's document; refuse one that has another hash."""

    def write(self, text: str, name: str) -> None:
        """Store a node, unless it is there."""


class MemoryNodes:
    """Nodes that are kept nowhere else, to add up what is only compared."""

    def __init__(self) -> None:
        """Begin without nodes."""
        self._known: dict[str, Any] = {}

    def read(self, name: str) -> Any:
        """Return a node's document."""
        return self._known[name]

    def write(self, text: str, name: str) -> None:
        """Keep a node."""
        self._known[name] = json.loads(text)


@dataclass(frozen=True)
class Leaf:
    """A leaf, or what a branch says of the leaves below it.

    Attributes:
        key: hexadecimal digits; of a branch, those that all its leaves begin with.
        sums: of all leaves.
        link: the node below a branch; of a leaf, the root of a tree of its own, or empty.
        label: the node that says what a leaf is about, or empty.
        leaves: how many there are.
    """

    key: str
    sums: Sums
    link: str = EMPTY
    label: str = EMPTY
    leaves: int = 1


@dataclass(frozen=True)
class Tree:
    """A tree in a place where nodes are stored; every change gives a new tree."""

    nodes: Nodes
    root: str = EMPTY

    @classmethod
    def of(cls, nodes: Nodes, leaves: Iterable[Leaf]) -> Tree:
        """Build the tree of some leaves."""
        tree = cls(nodes)
        return replace(tree, root=tree._built(leaves))

    def put(self, leaf: Leaf) -> Tree:
        """Return the tree with a leaf, in the place of one of the same key."""
        return replace(self, root=self._changed(self.root, leaf.key, leaf))

    def drop(self, key: str) -> Tree:
        """Return the tree without a leaf."""
        return replace(self, root=self._changed(self.root, key, None))

    def sums(self, low: str = "", high: str = _BEYOND) -> Sums:
        """Add up the leaves with low <= key < high."""
        total = NOTHING
        for leaf in self._covering(self.root, low, high):
            total += leaf.sums
        return total

    def leaves(self, low: str = "", high: str = _BEYOND) -> Iterator[Leaf]:
        """Give the leaves with low <= key < high, in the order of their keys."""
        branches, leaves = self._node(self.root)
        for leaf in leaves:
            if branches and low < leaf.key + _BEYOND and leaf.key < high:
                yield from replace(self, root=leaf.link).leaves(low, high)
            elif not branches and low <= leaf.key < high:
                yield leaf

    def _covering(self, root: str, low: str, high: str) -> Iterator[Leaf]:
        """Give branches that lie whole in a range, and single leaves at its ends."""
        branches, leaves = self._node(root)
        for leaf in leaves:
            end = leaf.key + _BEYOND
            if not branches:
                if low <= leaf.key < high:
                    yield leaf
            elif low <= leaf.key and end <= high:
                yield leaf
            elif low < end and leaf.key < high:
                yield from self._covering(leaf.link, low, high)

    def _changed(self, root: str, key: str, leaf: Leaf | None) -> str:
        branches, leaves = self._node(root)
        if not branches:
            new = [] if leaf is None else [leaf]
            return self._built([node for node in leaves if node.key != key] + new)
        begins = leaves[0].key[:-1]
        if not key.startswith(begins):
            return root if leaf is None else self._beside(root, leaves, leaf)
        prefix = key[: len(begins) + 1]
        below = next((node.link for node in leaves if node.key == prefix), EMPTY)
        below = self._changed(below, key, leaf)
        others = [node for node in leaves if node.key != prefix]
        if below:
            others.append(_branch(prefix, below, self._node(below)[1]))
        if sum(node.leaves for node in others) <= BUCKET:
            return self._built(
                [node for branch in others for node in Tree(self.nodes, branch.link).leaves()]
            )
        return others[0].link if len(others) == 1 else self._stored(True, others)

    def _beside(self, root: str, leaves: Sequence[Leaf], leaf: Leaf) -> str:
        """Branch where a leaf's key first differs from those below a node."""
        end = len(commonprefix([leaf.key, leaves[0].key])) + 1
        new = _branch(leaf.key[:end], self._built([leaf]), [leaf])
        return self._stored(True, [_branch(leaves[0].key[:end], root, leaves), new])

    def _built(self, leaves: Iterable[Leaf]) -> str:
        ordered = sorted(leaves, key=_key)
        if len(ordered) <= BUCKET:
            return self._stored(False, ordered) if ordered else EMPTY
        end = len(commonprefix([ordered[0].key, ordered[-1].key])) + 1
        groups: dict[str, list[Leaf]] = {}
        for leaf in ordered:
            groups.setdefault(leaf.key[:end], []).append(leaf)
        branches = []
        for key, group in groups.items():
            below = self._built(group)
            branches.append(_branch(key, below, self._node(below)[1]))
        return self._stored(True, branches)

    def _node(self, root: str) -> tuple[bool, list[Leaf]]:
        """Return whether a node branches, and what it holds."""
        if root == EMPTY:
            return False, []
        branches, rows = self.nodes.read(root)
        return branches, [
            Leaf(key, Sums.from_list(sums), link, label, leaves)
            for key, sums, link, label, leaves in rows
        ]

    def _stored(self, branches: bool, leaves: Iterable[Leaf]) -> str:
        ordered = sorted(leaves, key=_key)
        rows = [[one.key, one.sums.to_list(), one.link, one.label, one.leaves] for one in ordered]
        return stored(self.nodes, [branches, rows])


def stored(nodes: Nodes, document: Any) -> str:
    """Store a document and return the hash under which it is found."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    name = hashlib.sha256(text.encode()).hexdigest()
    nodes.write(text, name)
    return name


def _branch(key: str, link: str, leaves: Sequence[Leaf]) -> Leaf:
    total = NOTHING
    for leaf in leaves:
        total += leaf.sums
    return Leaf(key, total, link, EMPTY, sum(leaf.leaves for leaf in leaves))


def _key(leaf: Leaf) -> str:
    return leaf.key


_MANY = 500  # rows of one statement


class StoredNodes:
    """Nodes of a ledger's sums in its database; new ones wait until a record seals them."""

    def __init__(self, store: Store, connection: sa.Connection) -> None:
        """Read and write in one transaction."""
        self._store, self._connection = store, connection
        self._known: dict[str, Any] = {}
        self._new: dict[str, str] = {}

    def read(self, name: str) -> Any:
        """Return a node's document.

        Raises:
            BudgetError: it is missing, or another one: the tally would mean nothing.
        """
        if name not in self._known:
            query = sa.select(STATE.c.text).where(STATE.c.hash == name)
            text = self._connection.execute(query).scalar()
            if type(text) is not str or hashlib.sha256(text.encode()).hexdigest() != name:
                raise BudgetError(
                    f"ledger {self._store.place} was changed by something other than dpsynth: sums "
                    f"that a record seals are {'missing' if text is None else 'others'}. Restore "
                    "the ledger from a backup"
                )
            self._known[name] = json.loads(text)
        return self._known[name]

    def write(self, text: str, name: str) -> None:
        """Keep a node until it is stored."""
        if name not in self._known:
            self._known[name] = json.loads(text)
            self._new[name] = text

    def flush(self, *roots: str) -> None:
        """Store the new nodes below some nodes, and these; what lay between is never sealed."""
        names = list(dict.fromkeys(self._new_below(list(roots))))
        for start in range(0, len(names), _MANY):
            some = names[start : start + _MANY]
            query = sa.select(STATE.c.hash).where(STATE.c.hash.in_(some))
            stored = set(self._connection.execute(query).scalars())
            rows = [{"hash": name, "text": self._new[name]} for name in some if name not in stored]
            if rows:
                self._connection.execute(STATE.insert(), rows)
        for name in names:
            del self._new[name]

    def _new_below(self, part: Any) -> Iterator[str]:
        """Name new nodes that a part of a document leads to."""
        if isinstance(part, str) and part in self._new:
            yield part
            yield from self._new_below(self._known[part])
        elif isinstance(part, list):
            for link in part:
                yield from self._new_below(link)


Divergence = tuple[Fraction, int]
"""What adds up at one order: finite divergences, and how many were infinite."""


@dataclass(frozen=True)
class Sums:
    """What some spendings cost together.

    Attributes:
        fits: how many fits they are of.
        epsilon: the sum, of decimals as they are written.
        delta: likewise.
        divergences: for each order that a cap needs, the sum of Renyi divergences.
    """

    fits: int = 0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    divergences: Mapping[int, Divergence] = field(default_factory=dict)

    @classmethod
    def of(cls, spend: Spend, orders: tuple[int, ...], *, fits: int) -> Sums:
        """Return the sums of one spending."""
        by_order = {order: spend.divergence(order) for order in orders}
        return cls(
            fits,
            *spend.exact,
            {
                order: (Fraction(0), 1) if math.isinf(value) else (Fraction(value), 0)
                for order, value in by_order.items()
            },
        )

    def __add__(self, other: Sums) -> Sums:
        """Add two sums over the same orders; an empty one has none."""
        if not self.fits and not self.epsilon:
            return other
        if not other.fits and not other.epsilon:
            return self
        return Sums(
            self.fits + other.fits,
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            {
                order: (value + other.divergences[order][0], many + other.divergences[order][1])
                for order, (value, many) in self.divergences.items()
            },
        )

    @property
    def total(self) -> Total:
        """The same as rules of a policy take it."""
        return Total.of(
            self.epsilon,
            self.delta,
            {o: math.inf if many else value for o, (value, many) in self.divergences.items()},
        )

    def to_list(self) -> list[Any]:
        """Give the sums in JSON types, exactly."""
        orders = {str(o): [_binary(value), many] for o, (value, many) in self.divergences.items()}
        return [self.fits, str(self.epsilon), str(self.delta), orders]

    @classmethod
    def from_list(cls, values: list[Any]) -> Sums:
        """Read what ``to_list`` gave."""
        fits, epsilon, delta, orders = values
        by_order = {int(order): (_fraction(value), many) for order, (value, many) in orders.items()}
        return cls(fits, Fraction(epsilon), Fraction(delta), by_order)


def _binary(value: Fraction) -> str:
    """Write a sum of floats as hexadecimal digits over a power of two, which is short and exact.

    >>> _binary(Fraction(0.375)), _fraction("3p3")
    ('3p3', Fraction(3, 8))
    """
    return f"{value.numerator:x}p{value.denominator.bit_length() - 1}"


def _fraction(text: str) -> Fraction:
    digits, _, power = text.partition("p")
    return Fraction(int(digits, 16), 1 << int(power))


NOTHING = Sums()
