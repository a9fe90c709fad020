"""A network as a plain graph of known operations, so that no code of another package runs on rows.

A module's ``forward`` is Python and could keep the rows that it is called with. So it is never
called with any: `traced` runs it once on symbols (torch.fx), which hold no number, and records the
operations. `rebuilt` then checks every node against lists of operations and layers that compute and
do nothing else, and copies the layers. What is trained on private rows is this copy.

Source: Reed et al., torch.fx, arXiv 2112.08429, section 4 (symbolic tracing).
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from dpsynth.errors import InputError

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
