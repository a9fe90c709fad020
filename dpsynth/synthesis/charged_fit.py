"""The order of a fit, which is the privacy argument: plan, charge, read, learn, save.

The plan is calibrated from public facts before. Headers, types of columns and which lines are
records are checked before, too: a table can only be refused for them. Here it is said what the fit
will take, the ledger is charged, and only then is the first row read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.short_repr import short_repr
from dpsynth._util.torchrun import place_of
from dpsynth.certificate import certify
from dpsynth.errors import BudgetError, InputError
from dpsynth.files import OutputClaim, Saved, claimed
from dpsynth.ledger import Ledger, Use, charged, compare_source, default_ledger
from dpsynth.models import DISCOVERY, Progress, silent
from dpsynth.privacy import Entropy, OsEntropy, PaidEntropy, PoissonSgd, PrivacyPlan
from dpsynth.privacy.public_quality import QUALITY
from dpsynth.schema import AnySchema
from dpsynth.synthesis.checkpoints import FitCheckpoints, Found, facts_of, kept_in
from dpsynth.synthesis.fit_cost import estimated, require_memory, unadvised
from dpsynth.synthesis.preparation import Preparation
from dpsynth.synthesis.run import Run
from dpsynth.tables import NamedSource

if TYPE_CHECKING:
    from dpsynth.models.dpsgd import Ranks

FindOnce = Callable[[Callable[[Callable[[], None]], Found]], Found]
"""Runs the event that finds codes, unless an earlier process of the fit has; gives the codes.

What runs it is handed a check to make between its reading and its noise.
"""


@dataclass(frozen=True)
class Terms:
    """Under which terms a fit is made; see `fit` for each.

    Attributes:
        use: the dataset, the purpose, the tier and the policy.
        ledger: where to charge; the default one if None.
        without_ledger: charge nowhere.
        output: folder to save the run in.
        entropy: source of noise and sampling; the operating system's if None.
        progress: called with a stage and its fraction done.
        checkpoints: folder where the fit keeps its state, or goes on from it; None for neither.
        device: where a network trains: ``auto``, ``cpu`` or ``cuda``.
        ranks: other processes that take the steps of a network as well; None for none.
        advise: called before the charge with a sentence: how long the fit will take, and how much
            memory.
        any_memory: whether a fit is tried that needs more memory than there is.
        in_memory: whether coded rows are in memory, and not in shards or a warehouse.
        depth: calls between the user's line and `charged_fit`, for warnings.
    """

    use: Use
    ledger: Ledger | None = None
    without_ledger: bool = False
    output: str | Path | None = None
    entropy: Entropy | None = None
    progress: Progress = silent
    checkpoints: str | Path | None = None
    device: str = "cpu"
    ranks: Ranks | None = None
    advise: Callable[[str], None] = unadvised
    any_memory: bool = False
    in_memory: bool = True
    depth: int = 3

    def __repr__(self) -> str:
        """Name the dataset."""
        return short_repr(self, f"dataset {self.use.dataset}")


@dataclass(frozen=True, eq=False, repr=False)
class Completed:
    """What reading gives where it also finds codes: the rest of the fit is about these codes.

    Attributes:
        schema: with the codes.
        unfitted: the generator of this schema.
        cohort: coded by it.
    """

    schema: AnySchema
    unfitted: Any
    cohort: Any

    def __repr__(self) -> str:
        """Show no code."""
        return short_repr(self, f"schema {self.schema.name}")


def charged_fit(
    schema: AnySchema,
    prepared: Preparation[Any, Any],
    sources: Iterable[NamedSource],
    read: Callable[[Entropy, FindOnce], Any],
    terms: Terms,
) -> Run:
    """Charge the ledger, then read, learn and save; the budget stays charged if that fails.

    Args:
        schema: of the source.
        prepared: the fit, from public facts.
        sources: what will be read, so that the ledger can point out one that it saw before.
        read: reads the private rows, with the randomness of the open plan, and returns
            the cohort, or a `Completed` fit where the plan has it find codes. It is given what
            runs that event, once in a fit.
        terms: who pays, and where the run goes.
    """
    unfitted = prepared.generator()
    _place(unfitted, prepared.model, terms)  # before the charge
    cost = estimated(prepared, in_memory=terms.in_memory)
    require_memory(cost, anyway=terms.any_memory)
    terms.advise(cost.sentence)
    entropy = terms.entropy or OsEntropy()
    stamps = [] if type(entropy) is OsEntropy else ["seeded-entropy"]
    if terms.without_ledger:
        stamps.append("no-ledger")
    sources = tuple(sources)
    with ExitStack() as held:
        claim = held.enter_context(claim_of(terms.output, prepared, schema))
        book = None
        if not terms.without_ledger:
            book = terms.ledger or default_ledger(stacklevel=terms.depth + 2)
        kept = None
        if terms.checkpoints is not None:
            kept = held.enter_context(_kept(schema, prepared, unfitted, book, sources, terms))
        with charged(
            book,
            prepared.plan,
            schema,
            prepared.model,
            terms.use,
            networks=prepared.networks,
            kept=kept,
        ) as charges:
            opened = charges.first
            if book is not None and opened is not None and (kept is None or kept.digests is None):
                digests = [compare_source(book, opened.entry, source) for source in sources]
                for source in book.originals:
                    compare_source(book, opened.entry, source)
                if kept is not None:
                    kept.began(opened, digests)
            paid = _opened(prepared.plan, entropy, kept)

            def find_once(find: Callable[[Callable[[], None]], Found]) -> Found:
                if kept is not None and kept.found is not None:
                    return kept.found
                found = find(charges.require_open)
                if kept is not None:
                    kept.keep_found(found)
                return found

            cohort = read(paid, find_once)
            if isinstance(cohort, Completed):  # its codes were found by an event of the plan
                schema, unfitted, cohort = cohort.schema, cohort.unfitted, cohort.cohort
            _place(unfitted, prepared.model, terms)
            charges.require_open()  # before any other event
            fitting = [cohort, prepared.plan, paid, terms.progress]
            generator = unfitted.fit(*fitting, *(() if kept is None else (kept,)))
            if kept is not None:
                kept.require_all_steps(prepared.plan)
            _require_used(paid)
            run: Run = Run(
                schema=schema,
                model=prepared.model,
                config=generator.config(),
                arrays=generator.arrays(),
                certificate=certify(
                    schema,
                    prepared.plan,
                    model=prepared.model,
                    charge=None if opened is None else opened.charge,
                    seeded=type(entropy) is not OsEntropy,
                ),
                stamps=tuple(stamps),
            )
            saved = charges.save(claim, run.digest, run.save)
        if kept is not None and saved is not None and saved.place is not None:
            kept.remove()
    require_saved(saved, charged_as=None if opened is None else opened.entry.id)
    return run


def _opened(plan: PrivacyPlan, entropy: Entropy, kept: FitCheckpoints | None) -> PaidEntropy:
    """Open the plan, once for this fit: what an earlier process of it ran is used up already."""
    paid = plan.opened(entropy)
    if kept is not None and kept.state is not None:  # which is first kept after all counts
        paid.take_over(
            {
                event.name: kept.step if isinstance(event, PoissonSgd) else event.most_runs
                for event in plan.events
                if event.name != QUALITY
            }
        )
    elif kept is not None and kept.found is not None:
        paid.take_over({DISCOVERY: 1})
    return paid


def _require_used(paid: PaidEntropy) -> None:
    """Refuse to save a run that the plan's events did not make.

    The share for public figures stays for `publish_quality`.

    Raises:
        BudgetError: an event did not run, or not to its end.
    """
    left = [name for name in paid.unused if name != QUALITY]
    if left:
        raise BudgetError(f"the fit ended before it used event '{left[0]}' up; no run is kept")


def _place(unfitted: Any, model: str, terms: Terms) -> None:
    """Let a generator train on a device, and with other processes.

    Raises:
        InputError: there is no such device, or this generator uses no device or other processes.
            Or ``torchrun`` started several processes, and each would make, and charge, a fit.
    """
    if terms.ranks is not None:
        if not hasattr(unfitted, "train_with"):
            raise InputError(
                f"model '{model}' does not train in several processes; leave out torchrun. Those "
                "of one table that do: autoregressive, tvae"
            )
        unfitted.train_with(terms.ranks)
    elif place_of().size > 1:
        raise InputError(
            "torchrun started several processes, and each would make a fit of its own and charge "
            "it; fit with the command line, or leave out torchrun"
        )
    train_on = getattr(unfitted, "train_on", None)
    if train_on is not None:
        train_on(terms.device)
    elif terms.device == "cuda":
        raise InputError(
            f"model '{model}' does not train on a device here; leave it out. Those of one table "
            "that do: autoregressive, tvae"
        )


def _kept(
    schema: AnySchema,
    prepared: Preparation[Any, Any],
    unfitted: Any,
    book: Ledger | None,
    sources: Sequence[NamedSource],
    terms: Terms,
) -> AbstractContextManager[FitCheckpoints]:
    """Hold the folder of checkpoints.

    Raises:
        InputError: the fit cannot keep any.
    """
    if not getattr(unfitted, "resumable", False):
        raise InputError(
            f"model '{prepared.model}' keeps no checkpoints; leave them out. Those that do: "
            "autoregressive, tvae and ctgan of one table, autoregressive of linked tables"
        )
    if book is None or terms.output is None:
        raise InputError(
            "checkpoints need a ledger, which knows the last one, and an output folder for the run"
        )
    seeded = terms.entropy is not None and type(terms.entropy) is not OsEntropy
    facts = facts_of(schema, prepared, terms.use, seeded=seeded, ledger=book.id)
    return kept_in(terms.checkpoints or "", terms.output, facts, sources)


def claim_of(
    output: str | Path | None, prepared: Preparation[Any, Any], schema: AnySchema
) -> AbstractContextManager[OutputClaim | None]:
    """Hold the output, and room for the run, before anything is paid."""
    return nullcontext() if output is None else claimed(output, prepared.room(schema))


def require_saved(saved: Saved | None, *, charged_as: str | None, noun: str = "the run") -> None:
    """Raise an error if a result is not where it should be; by now its entry is closed."""
    if saved is not None:
        entry = "" if charged_as is None else f"The ledger counts it, by entry {charged_as[:12]}"
        saved.require_target(noun, entry or "Nothing was charged")
