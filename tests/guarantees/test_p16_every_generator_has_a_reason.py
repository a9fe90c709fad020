"""P16: a generator whose seed is public, constant or guessable, anywhere in the program.

Noise, sampling and coins come from `privacy.entropy`, in a real fit from the operating system. So
each other place that makes or seeds a generator of random numbers is on a list, with the reason
why what it draws hides nothing. A new one, or another seed at an old one, fails until somebody has
written such a reason down.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..support.reasons_for_generators import REASONS
from ..support.source_code import tree_of

ROOT = Path(__file__).parents[2]
FOLDERS = ("dpsynth", "models", "eval")

# what makes or seeds a generator, by the last name of the call
MAKERS = {
    *("default_rng", "manual_seed", "seed", "SeedSequence", "RandomState", "Random", "Generator"),
    *("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "SeededEntropy", "OsEntropy"),
    *("SystemRandom", "set_rng_state", "fork_rng", "initial_seed", "setstate", "set_state"),
}
# what draws from a generator that all of a process shares, unless it is given one
DRAWERS = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "bernoulli_", "multinomial", "poisson", "normal_", "uniform_", "random_"),
    *("exponential_", "geometric_", "log_normal_", "cauchy_", "dropout", "normal"),
}
SHARED = {"torch", "random", "functional", "F", "init"}


@functools.cache
def sources() -> list[tuple[str, ast.Module]]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), tree_of(path)) for path in paths]


def calls(tree: ast.AST, where: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Every call, with the function or class that it is in."""
    for node in ast.iter_child_nodes(tree):
        inner = where
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            inner = f"{where}.{node.name}" if where else node.name
        if isinstance(node, ast.Call):
            yield where, node
        yield from calls(node, inner)


def last_name(function: ast.expr) -> tuple[str, str]:
    """The name that is called, and what it is an attribute of."""
    if isinstance(function, ast.Attribute):
        owner = function.value
        if isinstance(owner, ast.Attribute):
            return function.attr, owner.attr
        return function.attr, owner.id if isinstance(owner, ast.Name) else ""
    return (function.id if isinstance(function, ast.Name) else "", "")


def made(file: str, tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Where a file makes or seeds a generator: file, function, the call as it is written."""
    for where, call in calls(tree):
        name, _ = last_name(call.func)
        if name in MAKERS:
            words = ", ".join(ast.unparse(part) for part in [*call.args, *call.keywords])
            yield file, where, f"{name}({words})"


def shared(tree: ast.Module) -> Iterator[str]:
    """Draws from a generator that is not passed in."""
    for where, call in calls(tree):
        name, owner = last_name(call.func)
        keywords = {keyword.arg for keyword in call.keywords}
        if owner == "random" and name not in MAKERS:  # numpy.random.x, random.x
            yield f"{where}: {ast.unparse(call)}"
        elif name in DRAWERS and "generator" not in keywords:
            if owner in SHARED or name.endswith("_"):
                yield f"{where}: {ast.unparse(call)}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(one.name == "random" for one in node.names):
            yield "import random"
        elif isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"):
            yield f"from {node.module}"


def found_in(code: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    tree = ast.parse(code)
    return list(made("file", tree)), list(shared(tree))


def test_each_generator_is_on_the_list_with_its_reason() -> None:
    found = {one for file, tree in sources() for one in made(file, tree)}
    assert found - set(REASONS) == set(), "write down why what these draw hides nothing"
    assert set(REASONS) - found == set(), "these are gone"


def test_the_source_for_tests_is_imported_where_it_hides_nobody() -> None:
    """Under another name, too, it would have to be imported."""
    named = {
        file
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and any(n.name == "SeededEntropy" for n in node.names)
    }
    assert named == {
        "dpsynth/synthesis/replicates.py",
        "dpsynth/assessment/evaluation.py",
        "dpsynth/forecasts/forecast.py",
        "models/histories/networks/autoregressive.py",
    }


def test_nothing_draws_from_a_generator_that_all_share() -> None:
    found = {file: list(shared(tree)) for file, tree in sources()}
    assert {file: draws for file, draws in found.items() if draws} == {}


@pytest.mark.parametrize(
    "slip",
    [
        "def publish(): ask(cohort, SeededEntropy(drawn.seed))",
        "def publish(): rng = np.random.default_rng(drawn.seed)",
        "def fit(): torch.manual_seed(0)",
        "def fit(): noise = numpy.random.Generator(numpy.random.PCG64(7))",
        "def fit(): np.random.seed(1)",
        "class A:\n def f(self): source = random.Random(self.run)",
    ],
)
def test_a_generator_with_a_seed_of_its_own_is_caught(slip: str) -> None:
    generators, _ = found_in(slip)
    assert generators and not {generator[1:] for generator in generators} & {
        reason[1:] for reason in REASONS
    }


@pytest.mark.parametrize(
    "slip",
    [
        "def noise(): return torch.randn(size)",
        "def noise(): return torch.empty(size).normal_(0, 1)",
        "def noise(): return np.random.normal(size=3)",
        "def pick(): return np.random.choice(units)",
        "import random",
        "from random import gauss",
        "def mask(): return torch.nn.functional.dropout(x)",
    ],
)
def test_a_draw_from_a_shared_generator_is_caught(slip: str) -> None:
    assert found_in(slip)[1]


def test_draws_that_are_given_a_generator_are_fine() -> None:
    fine = "torch.randn(3, generator=g); x.normal_(generator=g); rng.normal(); stats.norm.cdf(0)"
    assert found_in(f"def f(): {fine}") == ([], [])
