"""What a generator of another package is handed: each event of its plan, once, and nothing else.

**The rule.** Private rows reach such a generator through the mechanisms of the plan only. By
composition its run is then (epsilon, delta)-differentially private whatever its code computes from
the answers: post-processing (Dwork and Roth 2014, proposition 2.1). What has to hold is this:

1. *It is given public facts and answers, and no row.* Its code runs in a thread of its own, which
   holds a `Mechanisms`: two queues. The cohort stays with the `Desk`, in the thread that asked for
   the fit. Nothing that the generator is handed refers to a row, nor does the stack of its thread,
   nor an error that it gets: errors are built anew from their text, without a traceback.
2. *Each answer is an event of the plan, once.* The desk takes an event off its list before it runs
   it, so that not even one that failed can be run again. An event that is not on the list is
   refused, and the refusal ends the fit, also where the generator catches it.
3. *What it asks for is a function of public facts and of earlier answers.* It has nothing else to
   compute it from. Pairs may depend on the columns' counts: `ChosenHistograms` bounds any choice.
4. *None of its code runs on rows.* A network is trained as a graph of known operations (`graphs`),
   by per-row gradients that are clipped by unit (`OpacusSgd`). The clipping norm is read off rows
   that cost nothing.
5. *The plan was made before.* It follows from `Spending`, a public function of domain and budget,
   and the ledger was charged for all of it.

**What is not enforced.** Python confines no code: a module of the package can open files, walk all
objects of the process, or patch dpsynth. Points 1 to 5 stop mistakes, and everything that a
generator does through what it is handed. Against a package that is out to take rows there is no
protection but not to install it, and the certificate says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.models import Domain, Spending

if TYPE_CHECKING:
    from torch import nn

    from dpsynth.privacy import PrivacyBudget

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_DONE, _FAILED, _CLOSED = "done", "failed", "closed"


class PlugIn(Protocol):
    """What the class has that an entry point of the group ``dpsynth.generators`` names."""

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""

    @classmethod
    def spending(cls, domain: Domain, budget: PrivacyBudget) -> Spending:
        """Divide the budget: a public function, the same each time."""
        ...

    def fit(self, mechanisms: Mechanisms) -> None:
        """Learn from the answers of the mechanisms."""

    def sample(self, rows: int, rng: np.random.Generator) -> npt.ArrayLike:
        """Draw bins ``[rows, columns]``, of all columns of the domain."""
        ...

    def config(self) -> dict[str, Any]:
        """Describe what was learned in plain JSON values."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the learned arrays by name."""
        ...

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild a fitted generator."""
        ...


@dataclass(frozen=True)
class Columns:
    """The columns as the noisy counts show them; everything after is about their bins.

    Attributes:
        names: of the columns of the domain.
        shares: per column, the share of units in each bin, ``[bins]``; they add up to 1.
        units: the noisy number of units.
    """

    names: tuple[str, ...]
    shares: tuple[Floats, ...]
    units: float

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each column."""
        return tuple(map(len, self.shares))


class Mechanisms:
    """The events of a plan, each to be run once; see the module for why this is all.

    In the ``fit`` of a generator (docs/extending.md has a whole one)::

        columns = mechanisms.count_columns()
        [table] = mechanisms.count_pairs([(0, 1)])
    """

    __slots__ = ("_questions", "_answers")

    def __init__(self, questions: SimpleQueue[Any], answers: SimpleQueue[Any]) -> None:
        """Connect with a desk."""
        self._questions, self._answers = questions, answers

    def count_columns(self, *, bins: int = 16) -> Columns:
        """Run the event of the columns: noisy counts of each, merged into bins.

        Args:
            bins: into which a smooth numeric column is cut, about; from 2 to 64.

        Raises:
            BudgetError: it was run already.
        """
        columns: Columns = self._ask("count_columns", bins=bins)
        return columns

    def count_pairs(self, pairs: Sequence[tuple[int, int]]) -> list[Floats]:
        """Run the event of the pairs: noisy joint counts of the bins of two columns each.

        Args:
            pairs: places of the columns; chosen as one likes. The more, the noisier each.

        Returns:
            One array ``[bins of the first, bins of the second]`` per pair, in units.

        Raises:
            BudgetError: it is not in the plan, or was run already.
            InputError: columns were not counted yet, or a pair does not name two of them.
        """
        tables: list[Floats] = self._ask("count_pairs", pairs=[(int(i), int(j)) for i, j in pairs])
        return tables

    def train(
        self, network: nn.Module, *, rows: npt.ArrayLike | None = None, learning_rate: float = 0.01
    ) -> None:
        """Run the event of the training: all its steps of DP-SGD, which move the network.

        Args:
            network: maps bins ``[rows, columns]``, int64, to one loss per row, ``[rows]``. It is
                traced and copied; its parameters are set to what the steps learned.
            rows: bins ``[rows, columns]`` from which the clipping norm is read, such as draws from
                counts; None: columns are drawn on their own.
            learning_rate: of the first step; Adam, with a cosine schedule.

        Raises:
            BudgetError: it is not in the plan, or was run already.
            InputError: columns were not counted yet, or the network cannot be trained so.
        """
        import torch

        from dpsynth.models.outside.graphs import traced

        graph, layers = traced(network)
        bins = None if rows is None else np.array(rows, dtype=np.int64)
        question = {"graph": graph, "layers": layers, "rows": bins, "rate": float(learning_rate)}
        learned = self._ask("train", **question)
        with torch.no_grad():
            for name, layer in layers.items():
                for parameter, values in zip(layer.parameters(), learned[name], strict=True):
                    parameter.copy_(torch.from_numpy(values))

    def generator(self) -> np.random.Generator:
        """Return a source of randomness, which nobody can replay."""
        source: np.random.Generator = self._ask("generator")
        return source

    def _ask(self, mechanism: str, **question: Any) -> Any:
        self._questions.put((mechanism, question))
        kind, answer = self._answers.get()
        if kind == "answer":
            return answer
        raise (BudgetError if kind == "budget" else InputError)(answer)


def serve(
    work: Callable[[Mechanisms], None], answers: Mapping[str, Callable[..., Any]], name: str
) -> None:
    """Run a generator's work in a thread of its own, and answer what it asks.

    Args:
        work: is called with the `Mechanisms`.
        answers: by name, what this side does; called in this thread.
        name: of the generator, for messages.

    Raises:
        DpsynthError: the first refusal, also where the generator went on after it.
        InputError: the work failed; the message names the kind of error alone.
    """
    questions: SimpleQueue[Any] = SimpleQueue()
    replies: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_work, args=(work, questions, replies), daemon=True).start()
    refusal: DpsynthError | None = None
    try:
        while True:
            mechanism, question = questions.get()
            if mechanism == _DONE:
                break
            if mechanism == _FAILED:
                raise refusal or InputError(f"generator '{name}' failed in its fit ({question})")
            reply, refused = _reply(answers, mechanism, question)
            refusal = refusal or refused
            replies.put(reply)
    finally:
        replies.put((_CLOSED, "the fit has ended: its mechanisms answer no more"))
    if refusal is not None:
        raise refusal


def _work(
    work: Callable[[Mechanisms], None], questions: SimpleQueue[Any], replies: SimpleQueue[Any]
) -> None:
    try:
        work(Mechanisms(questions, replies))
    except BaseException as error:
        questions.put((_FAILED, type(error).__name__))
    else:
        questions.put((_DONE, None))


def _reply(
    answers: Mapping[str, Callable[..., Any]], mechanism: str, question: Mapping[str, Any]
) -> tuple[tuple[str, Any], DpsynthError | None]:
    """Answer one question. Of an error only the text is passed on: frames of a traceback hold rows.

    Returns:
        The answer or the refusal to pass on, and the error to end the fit with, if any.
    """
    try:
        if mechanism not in answers:
            raise InputError("there is no such mechanism")
        return ("answer", answers[mechanism](**question)), None
    except BudgetError as error:
        return ("budget", str(error)), BudgetError(str(error))
    except DpsynthError as error:
        return ("input", str(error)), InputError(str(error))
    except Exception as error:
        text = f"a mechanism failed ({type(error).__name__})"
        return ("input", text), InputError(text)
