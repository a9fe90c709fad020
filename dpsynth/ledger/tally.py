"""The tally of a ledger: what counts as spent, in sums that each record of the chain seals.

Whoever writes needs the policy in force and what the datasets of one budget have spent: in all, and
within 365 days. Reading that off all records takes longer with each of them; the tally holds it in
trees (`sum_tree`), of which a write reads and stores a few nodes. Every record holds the hash of
the tally as it left it, under the chain's seal.

A tally follows from the records alone: `Tally.of` adds up the fits that count, and `ledger verify`
compares. What changes how a spending is counted (`renyi`, `past_of`) raises `RULE`; a tally of an
earlier rule is added up anew at the next write.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dpsynth.ledger import Record
from dpsynth.ledger.sum_tree import EMPTY, NOTHING, Leaf, Nodes, Sums, Tree, stored
from dpsynth.policy import Past, Policy
from dpsynth.policy.rules import YEAR
from dpsynth.privacy import PrivacyFilter, Unit

RULE = 1
_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_START = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = 28
_QUARTERS = str.maketrans({f"{digit:x}": f"{digit // 4}{digit % 4}" for digit in range(16)})
_HALF = 32  # digits of a key that name a dataset; those after it name one of its accounts

Spending = tuple[str, int, Past]
"""An entry's id, which of its spendings it is, and the spending."""


@dataclass(frozen=True)
class Tally:
    """What counts, as of one record.

    Attributes:
        nodes: where the trees are stored.
        orders: of the divergences that are summed.
        policy: number of the record that put the policy in force, and SHA-256 of its body; None
            where there is none.
        accounts: root of the tree of accounts: one for each dataset, tier and privacy unit, each a
            tree of its spendings in the order of their times; those that may still spend come last.
    """

    nodes: Nodes
    orders: tuple[int, ...] = ()
    policy: tuple[int, str] | None = None
    accounts: str = EMPTY
    rule: int = RULE

    @classmethod
    def of(
        cls,
        nodes: Nodes,
        spendings: Iterable[Spending],
        orders: tuple[int, ...],
        policy: tuple[int, str] | None,
    ) -> Tally:
        """Add up spendings."""
        by_label: dict[tuple[str, ...], list[Leaf]] = {}
        for spending in spendings:
            by_label.setdefault(_label(spending[2]), []).append(_leaf(spending, orders))
        trees = {label: Tree.of(nodes, leaves) for label, leaves in by_label.items()}
        accounts = Tree.of(nodes, [_account(nodes, label, tree) for label, tree in trees.items()])
        return cls(nodes, orders, policy, accounts.root)

    @classmethod
    def read(cls, nodes: Nodes, root: str) -> Tally:
        """Read the tally that a record seals; that before the first record is empty."""
        if root == EMPTY:
            return cls(nodes)
        rule, orders, policy, accounts = nodes.read(root)
        return cls(nodes, tuple(orders), None if policy is None else tuple(policy), accounts, rule)

    def save(self) -> str:
        """Store the tally's own node; return its hash, which a record seals."""
        return stored(self.nodes, [self.rule, self.orders, self.policy, self.accounts])

    def check(self) -> None:
        """Read every node; whatever cannot be read raises."""
        for account in Tree(self.nodes, self.accounts).leaves():
            self.nodes.read(account.label)
            for _ in Tree(self.nodes, account.link).leaves():
                pass

    def covers(self, orders: Iterable[int]) -> bool:
        """Whether divergences of these orders are summed, by the rule of this dpsynth."""
        return self.rule == RULE and set(orders) <= set(self.orders)

    def changed(self, before: Sequence[Spending], after: Sequence[Spending]) -> Tally:
        """Return the tally in which an entry's spendings are others than before."""
        accounts = Tree(self.nodes, self.accounts)
        gone = [each for each in before if each not in after]
        new = [each for each in after if each not in before]
        for spending in (*gone, *new):
            label = _label(spending[2])
            key = _account_key(label)
            account = next(accounts.leaves(key, key + "g"), None)
            tree = Tree(self.nodes, EMPTY if account is None else account.link)
            leaf = _leaf(spending, self.orders)
            tree = tree.put(leaf) if spending in after else tree.drop(leaf.key)
            accounts = (
                accounts.put(_account(self.nodes, label, tree)) if tree.root else accounts.drop(key)
            )
        return Tally(self.nodes, self.orders, self.policy, accounts.root, self.rule)

    def spent(self, names: Iterable[str]) -> Sums:
        """Add up everything that datasets (in lower case) have spent."""
        total = NOTHING
        for _, tree in self._trees(names):
            total += tree.sums()
        return total

    def past(self, names: Iterable[str], now: datetime) -> list[Past]:
        """Give what datasets have spent, in few sums: of the last 365 days, and of before.

        The rules of a policy come to the same as if they were given each spending.
        """
        totals = []
        since = now - YEAR
        for label, tree in self._trees(names):
            split = _moment(since + _MICROSECOND)  # a spending of that very moment is out of it
            for at, sums in ((since, tree.sums(high=split)), (now, tree.sums(low=split))):
                totals += _past(label, at, sums)
        return totals

    def past_by_days(self, names: Iterable[str], now: datetime) -> list[Past]:
        """The same with a sum for each day (UTC), for a refusal to say when to ask again."""
        totals = []
        since = now - YEAR
        for label, tree in self._trees(names):
            split = _moment(since + _MICROSECOND)
            totals += _past(label, since, tree.sums(high=split))
            while (first := next(tree.leaves(low=split), None)) is not None:
                at = _at(first.key)
                if at is None:  # each for itself: how many there are is said
                    for leaf in tree.leaves(low=split):
                        totals += _past(label, None, leaf.sums)
                    break
                end = at.replace(hour=0, minute=0, second=0, microsecond=0) + _DAY
                totals += _past(label, at, tree.sums(split, _moment(end)))
                split = _moment(end)
        return totals

    def units(self, names: Iterable[str]) -> list[Unit]:
        """List what the fits that count, of datasets in lower case, are fits for."""
        return list(dict.fromkeys(_unit(label) for label, _ in self._trees(names)))

    def _trees(self, names: Iterable[str]) -> Iterator[tuple[tuple[str, ...], Tree]]:
        accounts = Tree(self.nodes, self.accounts)
        for name in sorted(set(names)):
            start = _digits(name)[:_HALF]
            for leaf in accounts.leaves(start, start + "g"):
                yield tuple(self.nodes.read(leaf.label)), Tree(self.nodes, leaf.link)


def orders_of(policy: Policy | None) -> tuple[int, ...]:
    """List the orders of divergences that a policy's caps on several fits need."""
    if policy is None:
        return ()
    owners = (policy.caps, *(tier.caps for tier in policy.tiers))
    caps = [cap for caps in owners for cap in (caps.year, caps.total)]
    orders = {PrivacyFilter(cap.epsilon, policy.delta).order for cap in caps if cap is not None}
    return tuple(sorted(order for order in orders if order is not None))


def pointer(record: Record) -> tuple[int, str]:
    """Say in which record a policy stands, and what it says there."""
    return record.number, hashlib.sha256(record.body.encode()).hexdigest()


def _label(past: Past) -> tuple[str, ...]:
    """What an account is of; spendings of one label are added up."""
    unit = json.dumps(past.unit.to_dict(), sort_keys=True)
    return past.dataset.lower(), (past.tier or "").lower(), unit


def _unit(label: tuple[str, ...]) -> Unit:
    return Unit.from_dict(json.loads(label[2]), "tally")


def _past(label: tuple[str, ...], at: datetime | None, sums: Sums) -> list[Past]:
    dataset, tier, _ = label
    return [Past(at, dataset, tier or None, sums.total, _unit(label))] if sums.epsilon else []


def _account(nodes: Nodes, label: tuple[str, ...], tree: Tree) -> Leaf:
    return Leaf(_account_key(label), tree.sums(), tree.root, stored(nodes, label))


def _account_key(label: tuple[str, ...]) -> str:
    dataset, *rest = label
    return _digits(dataset)[:_HALF] + _digits("\n".join(rest))[:_HALF]


def _leaf(spending: Spending, orders: tuple[int, ...]) -> Leaf:
    entry, part, past = spending
    key = f"{_moment(past.at)}{_digits(entry)[:_HALF]}{part:02x}"
    sums = Sums.of(past.spend, orders, fits=0 if part else 1)
    return Leaf(key, sums)


def _moment(at: datetime | None) -> str:
    """Write a time in digits from 0 to 3 that sort like it; what may still spend comes last."""
    if at is None:
        return "3" * _DIGITS
    return f"{(at - _START) // _MICROSECOND:014x}".translate(_QUARTERS)


def _at(key: str) -> datetime | None:
    """Read off a spending's key since when it can spend nothing more; None while it may."""
    digits = key[:_DIGITS]
    return None if digits == _moment(None) else _START + int(digits, 4) * _MICROSECOND


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
