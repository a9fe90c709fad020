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
4. *None of its code runs on rows.* A network is trained as a graph of known operations,
   by per-row gradients that are clipped by unit (`OpacusSgd`). The clipping norm is read off rows
   that cost nothing.
5. *The plan was made before.* It follows from `Spending`, a public function of domain and budget,
   and the ledger was charged for all of it.

**What is not enforced.** Python confines no code: a module of the package can open files, walk all
objects of the process, or patch dpsynth. Points 1 to 5 stop mistakes, and everything that a
generator does through what it is handed. Against a package that is out to take rows there is no
protection but not to install it, and the certificate says so.

A network as a plain graph of known operations, so that no code of another package runs on rows.

A module's ``forward`` is Python and could keep the rows that it is called with. So it is never
called with any: `traced` runs it once on symbols (torch.fx), which hold no number, and records the
operations. `rebuilt` then checks every node against lists of operations and layers that compute and
do nothing else, and copies the layers. What is trained on private rows is this copy.

Source: Reed et al., torch.fx, arXiv 2112.08429, section 4 (symbolic tracing).
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.models import Domain, Spending

if TYPE_CHECKING:
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

        pass

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


_FUNCTIONS = frozenset(
    [
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg),
        *(operator.getitem, operator.eq, operator.ne, operator.lt, operator.gt, operator.matmul),
        *(torch.add, torch.sub, torch.mul, torch.div, torch.matmul, torch.bmm, torch.einsum),
        *(torch.cat, torch.stack, torch.exp, torch.log, torch.sigmoid, torch.tanh, torch.relu),
        *(torch.softmax, torch.log_softmax, torch.sum, torch.mean, torch.gather, torch.where),
        *(torch.logsumexp, torch.clamp, torch.square, torch.sqrt, torch.abs, torch.transpose),
        *(torch.permute, torch.reshape, torch.flatten, torch.unsqueeze, torch.squeeze),
        *(functional.relu, functional.gelu, functional.silu, functional.elu, functional.softplus),
        *(functional.leaky_relu, functional.softmax, functional.log_softmax, functional.one_hot),
        *(functional.pad, functional.cross_entropy, functional.mse_loss),
        functional.binary_cross_entropy_with_logits,
    ]
)
_METHODS = frozenset(
    "view reshape flatten unflatten transpose permute unsqueeze squeeze expand contiguous size dim "
    "sum mean gather logsumexp exp log softmax log_softmax sigmoid tanh relu clamp square sqrt abs "
    "float long eq ne lt gt mul add sub div neg matmul bmm narrow select".split()
)
_ATTRIBUTES = frozenset(("shape",))


def _layers() -> frozenset[type[nn.Module]]:
    """Return the classes of layers that a network may have, each of them without randomness."""
    from opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention

    return frozenset(
        [
            *(nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.LayerNorm, nn.GroupNorm),
            *(nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.LeakyReLU, nn.Softplus),
            *(nn.Softmax, nn.LogSoftmax, nn.Flatten, nn.Unflatten, nn.Identity),
            *(nn.MaxPool1d, nn.AvgPool1d, DPGRU, DPLSTM, DPRNN, DPMultiheadAttention),
        ]
    )


class _Tracer(fx.Tracer):
    """Looks into all modules but the known layers."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return type(m) in _layers()


def traced(network: nn.Module) -> tuple[fx.Graph, dict[str, nn.Module]]:
    """Run a network's ``forward`` on symbols and record it.

    Args:
        network: maps codes ``[rows, columns]``, int64, to one loss per row, ``[rows]``.

    Returns:
        The graph, and the layers that it calls, by name.

    Raises:
        InputError: ``forward`` cannot be run on symbols.
    """
    try:
        graph = _Tracer().trace(network)
        called = {str(node.target) for node in graph.nodes if node.op == "call_module"}
        return graph, {name: network.get_submodule(name) for name in sorted(called)}
    except Exception as error:
        raise InputError(
            f"the network cannot be traced ({type(error).__name__}): its forward must not branch "
            "on values, and takes the rows alone"
        ) from None


def rebuilt(graph: fx.Graph, layers: dict[str, nn.Module]) -> nn.Module:
    """Check a graph and its layers, and copy both; nothing of the network's own code is run.

    Raises:
        InputError: an operation, a layer or a value is none that is known to compute only.
    """
    if type(graph) is not fx.Graph or type(layers) is not dict:
        raise InputError("a network is a torch.nn.Module")
    root, known = nn.Module(), _layers()
    fresh, copies = fx.Graph(), {}
    for place, (name, layer) in enumerate(layers.items()):
        if type(layer) not in known:
            raise InputError("the network has a layer that is not on the list in docs/extending.md")
        _check_own(layer)
        copies[name] = copied(place)
        root.add_module(copies[name], copy.deepcopy(layer))
    copied_nodes: dict[fx.Node, fx.Node] = {}
    inputs = 0
    for node in graph.nodes:
        _check_node(node, layers)
        inputs += node.op == "placeholder"
        copied_nodes[node] = fresh.node_copy(node, lambda other: copied_nodes[other])
        if node.op == "call_module":
            copied_nodes[node].target = copies[str(node.target)]
    if inputs != 1:
        raise InputError("the network's forward takes one argument: the rows")
    return fx.GraphModule(root, fresh)


def copied(place: int) -> str:
    """Return the name of a layer's copy, by the layer's place among all."""
    return f"layer{place}"


def _check_node(node: fx.Node, layers: dict[str, nn.Module]) -> None:
    target = node.target
    known = (
        node.op == "output"
        or (node.op == "placeholder" and not node.args)
        or (node.op == "call_module" and target in layers)
        or (node.op == "call_method" and target in _METHODS)
        or (node.op == "call_function" and target in _FUNCTIONS)
        or (target is getattr and len(node.args) == 2 and node.args[1] in _ATTRIBUTES)
    )
    if not known:
        raise InputError(
            "the network uses an operation that is not on the list in docs/extending.md"
        )
    for value in (*node.args, *node.kwargs.values()):
        _check_value(value)


def _check_value(value: Any) -> None:
    """Accept nodes and plain constants, nested in tuples, lists and slices."""
    if isinstance(value, list | tuple):
        for part in value:
            _check_value(part)
    elif type(value) is slice:
        _check_value((value.start, value.stop, value.step))
    elif not (value is None or value is ... or type(value) in _CONSTANTS):
        raise InputError("the network uses a constant that is not a number, a text or a type")


_CONSTANTS = (fx.Node, int, float, bool, str, torch.dtype)


def _check_own(layer: nn.Module) -> None:
    """Refuse a layer with hooks, methods or tensors of its own beside those of its class."""
    for module in layer.modules():
        if not type(module).__module__.startswith(_HOMES):
            raise InputError("a layer holds a module that is neither torch's nor Opacus's")
        for name, value in vars(module).items():
            if name in _UNUSED:
                continue
            hooks = "hook" in name and isinstance(value, dict) and bool(value)
            if hooks or not _is_plain(value):
                kind = type(module).__name__
                raise InputError(f"a layer {kind} has hooks, or a '{name}' that is no plain value")


_HOMES = ("torch.nn.modules.", "opacus.layers.")
_UNUSED = frozenset(("_state_dict_hooks",))  # of states, which are never asked for here


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(part) for part in (*value, *value.values()))
    if isinstance(value, list | tuple | set):
        return all(_is_plain(part) for part in value)
    kinds = (int, float, bool, str, Tensor, nn.Parameter, torch.dtype, torch.device)
    if isinstance(value, type):
        return value.__module__.startswith(_HOMES)
    return value is None or type(value) in kinds or isinstance(value, nn.Module)
