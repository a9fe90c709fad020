"""The order of a fit, which is the privacy argument: plan, charge, read, learn, save.

The plan is calibrated from public facts before. Headers, types of columns and which lines are
records are checked before, too: a table can only be refused for them. Here it is said what the fit
will take, the ledger is charged, and only then is the first row read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.short_repr import short_repr
from dpsynth._util.torchrun import place_of
from dpsynth.certificate import certify
from dpsynth.errors import BudgetError, InputError
from dpsynth.files import OutputClaim, Saved, claimed
from dpsynth.ledger import Charges, Ledger, Use, charged, compare_source, default_ledger
from dpsynth.models import DISCOVERY, Progress, silent
from dpsynth.models.registry import names_of, spec_of
from dpsynth.privacy import (
    CodeDiscovery,
    Entropy,
    OsEntropy,
    PaidEntropy,
    PoissonSgd,
    PrivacyPlan,
)
from dpsynth.privacy.public_quality import QUALITY
from dpsynth.synthesis.capacity import capacity
from dpsynth.synthesis.checkpoints import FitCheckpoints, facts_of, kept_in
from dpsynth.synthesis.execution import Execution
from dpsynth.synthesis.fit_cost import estimated, require_memory, unadvised
from dpsynth.synthesis.preparation import Preparation, Prepared
from dpsynth.synthesis.readers import FitReader
from dpsynth.synthesis.run import Run
from dpsynth.tables import NamedSource

AnyPreparation = Preparation[Any, Any]


@dataclass(frozen=True)
class Terms:
    """Under which terms a fit is made; see `fit` for each.

    Attributes:
        use: the dataset, the purpose, the tier and the policy.
        ledger: where to charge; the default one if None.
        without_ledger: charge nowhere.
        output: folder to save the run in.
        entropy: source of noise and sampling; the operating system's if None.
        execution: where and how the work is done.
        progress: called with a stage and its fraction done.
        advise: called before the charge with sentences: how long the fit will take, and how much
            memory.
        depth: calls between the user's line and `charged_fit`, for warnings.
    """

    use: Use
    ledger: Ledger | None = None
    without_ledger: bool = False
    output: str | Path | None = None
    entropy: Entropy | None = None
    execution: Execution = Execution()
    progress: Progress = silent
    advise: Callable[[str], None] = unadvised
    depth: int = 3

    def __repr__(self) -> str:
        """Name the dataset."""
        return short_repr(self, f"dataset {self.use.dataset}")


def charged_fit(prepared: AnyPreparation, reader: FitReader[Any], terms: Terms) -> Run:
    """Charge the ledger, then read, learn and save; the budget stays charged if that fails.

    Args:
        prepared: the fit, from public facts.
        reader: of the private rows.
        terms: who pays, where the work is done, and where the run goes.
    """
    execution, unfitted = terms.execution, prepared.generator()
    _place(unfitted, prepared, execution)  # before the charge
    cost = estimated(prepared, in_memory=reader.in_memory)
    require_memory(cost, anyway=execution.any_memory)
    terms.advise(cost.sentence)
    if sentence := capacity(prepared, remedies=False).sentence:
        terms.advise(sentence)
    entropy = terms.entropy or OsEntropy()
    stamps = [] if type(entropy) is OsEntropy else ["seeded-entropy"]
    if terms.without_ledger:
        stamps.append("no-ledger")
    with ExitStack() as held:
        claim = held.enter_context(claim_of(terms.output, prepared))
        book = None
        if not terms.without_ledger:
            book = terms.ledger or default_ledger(stacklevel=terms.depth + 2)
        kept = None
        if execution.checkpoints is not None:
            kept = held.enter_context(_kept(prepared, book, reader.sources, terms))
        with charged(
            book,
            prepared.plan,
            prepared.schema,
            prepared.model,
            terms.use,
            networks=prepared.networks,
            kept=kept,
        ) as charges:
            opened = charges.first
            if book is not None and opened is not None and (kept is None or kept.digests is None):
                digests = [compare_source(book, opened.entry, source) for source in reader.sources]
                for source in book.originals:
                    compare_source(book, opened.entry, source)
                if kept is not None:
                    kept.began(opened, digests)
            paid = _opened(prepared.plan, entropy, kept)
            if prepared.plan.has(DISCOVERY):
                prepared = _with_found_codes(prepared, reader, paid, charges, kept)
                unfitted, reader = prepared.generator(), reader.coded_by(prepared.codec)
            rows = reader.read(paid)
            _place(unfitted, prepared, execution)
            charges.require_open()  # before any other event
            fitting = [rows, prepared.plan, paid, terms.progress]
            generator = unfitted.fit(*fitting, *(() if kept is None else (kept,)))
            if kept is not None:
                kept.require_all_steps(prepared.plan)
            _require_used(paid)
            run: Run = Run(
                schema=prepared.schema,
                model=prepared.model,
                config=generator.config(),
                arrays=generator.arrays(),
                certificate=certify(
                    prepared.schema,
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


def _with_found_codes(
    prepared: AnyPreparation,
    reader: FitReader[Any],
    paid: PaidEntropy,
    charges: Charges,
    kept: FitCheckpoints | None,
) -> AnyPreparation:
    """Run the event that finds codes, unless an earlier process has; return the fit of them."""
    if kept is not None and kept.found is not None:
        return prepared.with_codes(kept.found)
    event = prepared.plan.event(DISCOVERY)
    assert isinstance(event, CodeDiscovery)
    found = reader.find_codes(event, paid, charges.require_open)
    if kept is not None:
        kept.keep_found(found)
    return prepared.with_codes(found)


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


def _place(unfitted: Any, prepared: AnyPreparation, execution: Execution) -> None:
    """Let a generator train on a device, and with other processes.

    Raises:
        InputError: there is no such device, or this generator uses no device or other processes.
            Or ``torchrun`` started several processes, and each would make, and charge, a fit.
    """
    spec = spec_of(prepared.model)
    if execution.ranks is not None:
        if not spec.on_ranks:
            able = ", ".join(names_of(lambda spec: spec.on_ranks))
            raise InputError(
                f"model '{spec.name}' does not train in several processes; leave out torchrun. "
                f"Those of one table that do: {able}"
            )
        unfitted.train_with(execution.ranks)
    elif place_of().size > 1:
        raise InputError(
            "torchrun started several processes, and each would make a fit of its own and charge "
            "it; fit with the command line, or leave out torchrun"
        )
    if spec.on_device and isinstance(prepared, Prepared):
        unfitted.train_on(execution.device)
    elif execution.device == "cuda":
        able = ", ".join(names_of(lambda spec: spec.on_device))
        raise InputError(
            f"model '{spec.name}' does not train on a device here; leave it out. Those of one "
            f"table that do: {able}"
        )


def _kept(
    prepared: AnyPreparation,
    book: Ledger | None,
    sources: Sequence[NamedSource],
    terms: Terms,
) -> AbstractContextManager[FitCheckpoints]:
    """Hold the folder of checkpoints.

    Raises:
        InputError: the fit cannot keep any.
    """
    if not spec_of(prepared.model).resumable:
        single = ", ".join(names_of(lambda spec: spec.resumable and spec.path))
        linked = ", ".join(names_of(lambda spec: spec.resumable and spec.histories))
        raise InputError(
            f"model '{prepared.model}' keeps no checkpoints; leave them out. Those that do: "
            f"of one table {single}; of linked tables {linked}"
        )
    if book is None or terms.output is None:
        raise InputError(
            "checkpoints need a ledger, which knows the last one, and an output folder for the run"
        )
    seeded = terms.entropy is not None and type(terms.entropy) is not OsEntropy
    facts = facts_of(prepared.schema, prepared, terms.use, seeded=seeded, ledger=book.id)
    return kept_in(terms.execution.checkpoints or "", terms.output, facts, sources)


def claim_of(
    output: str | Path | None, prepared: AnyPreparation
) -> AbstractContextManager[OutputClaim | None]:
    """Hold the output, and room for the run, before anything is paid."""
    return nullcontext() if output is None else claimed(output, prepared.room())


def require_saved(saved: Saved | None, *, charged_as: str | None, noun: str = "the run") -> None:
    """Raise an error if a result is not where it should be; by now its entry is closed."""
    if saved is not None:
        entry = "" if charged_as is None else f"The ledger counts it, by entry {charged_as[:12]}"
        saved.require_target(noun, entry or "Nothing was charged")
