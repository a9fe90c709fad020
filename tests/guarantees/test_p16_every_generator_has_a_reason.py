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

OS = "the operating system's source: it takes no seed"
INTERNAL = "an evaluation, which draws no noise; its seed is stated with the result"
ORDER = (
    "the order of patients, and which of their rows are kept, in an internal assessment: no noise "
    "is drawn, and no run comes of it"
)
WEIGHTS = "initial weights, which no noise has to hide; seeded by the source of the fit"
POST = "post-processing of public or released things"

REASONS: dict[tuple[str, str, str], str] = {
    # noise, sampling of units, coins: the operating system's
    ("dpsynth/synthesis/charged_fit.py", "charged_fit", "OsEntropy()"): OS,
    ("dpsynth/synthesis/fitting.py", "fit_not_private", "OsEntropy()"): OS,
    ("dpsynth/assessment/published_quality.py", "publish_quality", "OsEntropy()"): OS,
    ("dpsynth/assessment/charged_audit.py", "audited_on_real", "OsEntropy()"): OS,
    ("dpsynth/assessment/training_audit.py", "trial", "OsEntropy()"): OS,
    ("dpsynth/tables/splitting.py", "coins", "OsEntropy()"): OS,
    ("dpsynth/assessment/fitted_controls.py", "_Board.cohort", "OsEntropy()"): OS,
    ("dpsynth/assessment/fitted_controls.py", "_Board.overfitted", "OsEntropy()"): OS,
    ("dpsynth/assessment/fitted_controls.py", "_Board.unseen", "OsEntropy()"): OS,
    ("dpsynth/assessment/shadow_design.py", "ShadowDesign.cohort", "OsEntropy()"): OS,
    ("dpsynth/assessment/shadow_design.py", "fit_and_draw", "OsEntropy()"): OS,
    ("models/outside/adapter.py", "OutsideGenerator.rehearse", "OsEntropy()"): OS,
    ("models/outside/adapter.py", "OutsideGenerator.rehearse", "default_rng(0)"): (
        "made-up rows of a rehearsal, of which nothing is kept"
    ),
    # the sources themselves
    (
        "dpsynth/privacy/entropy.py",
        "OsEntropy.generator",
        "default_rng(int.from_bytes(os.urandom(32), 'little'))",
    ): "32 fresh bytes of the operating system",
    ("dpsynth/privacy/entropy.py", "SeededEntropy.__init__", "default_rng(seed)"): (
        "the source for tests, which no release takes"
    ),
    # networks: weights are trained over, and released; the latent noise comes from elsewhere
    ("models/generators/tvae_network.py", "Network.__init__", "default_rng()"): (
        "a place for the latent noise, fresh; a fit puts a generator of its source there"
    ),
    ("models/generators/autoregressive.py", "Autoregressive._network", "Generator()"): WEIGHTS,
    ("models/generators/autoregressive.py", "Autoregressive._network", "manual_seed(seed)"): (
        WEIGHTS
    ),
    ("models/generators/tvae.py", "Tvae._network", "Generator()"): WEIGHTS,
    ("models/generators/tvae.py", "Tvae._network", "manual_seed(seed)"): WEIGHTS,
    ("models/histories/steps/distilled.py", "distilled", "Generator()"): WEIGHTS,
    ("models/histories/steps/distilled.py", "distilled", "manual_seed(seed)"): WEIGHTS,
    ("models/histories/steps/distilled.py", "restored_network", "Generator()"): WEIGHTS,
    ("models/histories/steps/distilled.py", "restored_network", "manual_seed(0)"): WEIGHTS,
    ("models/histories/networks/tvae.py", "TvaeHistories._train", "Generator()"): WEIGHTS,
    (
        "models/histories/networks/tvae.py",
        "TvaeHistories._train",
        "manual_seed(int(rng.integers(2 ** 31)))",
    ): WEIGHTS,
    ("models/histories/networks/tvae.py", "TvaeHistories.restore", "Generator()"): WEIGHTS,
    ("models/histories/networks/tvae.py", "TvaeHistories.restore", "manual_seed(0)"): WEIGHTS,
    (
        "models/histories/networks/tvae.py",
        "TvaeHistories._train",
        "SeededEntropy(0)",
    ): "which steps of drawn histories are kept: they belong to no real person",
    (
        "models/histories/networks/tvae.py",
        "TvaeHistories._heard",
        "SeededEntropy(0)",
    ): "which steps of canaries are kept, in an audit: they belong to no real person",
    (
        "models/histories/networks/tvae.py",
        "TvaeHistories._heard",
        "default_rng(0)",
    ): "latent noise of canaries, in an audit: they belong to no real person",
    (
        "models/histories/networks/autoregressive.py",
        "AutoregressiveHistories._canaries",
        "SeededEntropy(0)",
    ): "which steps of canaries are kept, in an audit: they belong to no real person",
    ("models/generators/ctgan.py", "Ctgan._residual", "Generator()"): WEIGHTS,
    ("models/generators/ctgan.py", "Ctgan._residual", "manual_seed(seed)"): WEIGHTS,
    ("models/generators/ctgan.py", "Ctgan.fit", "Generator()"): WEIGHTS,
    ("models/generators/ctgan.py", "Ctgan.fit", "manual_seed(int(rng.integers(2 ** 62)))"): WEIGHTS,
    ("models/generators/ctgan_trainer.py", "GeneratorTrainer.__init__", "Generator()"): (
        "weights that the critic's take the place of at once"
    ),
    # a bound on likelihoods of an audit: after the fit, and the same each time
    ("models/generators/tvae.py", "Tvae._log_prob_of_bins", "default_rng(0)"): POST,
    # synthetic rows and what is made from them
    ("dpsynth/synthesis/sampler.py", "Sampler._blocks", "default_rng([seed, block])"): POST,
    (
        "dpsynth/synthesis/cohort_sampler.py",
        "CohortSampler.block",
        "default_rng([seed, number])",
    ): POST,
    (
        "dpsynth/synthesis/replicates.py",
        "seeds_of",
        "SeedSequence([seed, number])",
    ): POST,
    ("dpsynth/synthesis/replicates.py", "Replicates.refit", "SeededEntropy(of_noise)"): (
        "noise of a refit to synthetic rows: it hides nobody"
    ),
    (
        "dpsynth/synthesis/cohort_replicates.py",
        "refitted",
        "SeededEntropy(of_noise)",
    ): "noise of a refit to drawn histories: it hides nobody",
    ("dpsynth/synthesis/cohort_replicates.py", "refitted", "default_rng(of_patients)"): POST,
    (
        "dpsynth/assessment/cohort_canaries.py",
        "PlantedHistories.black",
        "default_rng(self.seed)",
    ): "a cohort drawn from what a fit on synthetic histories keeps",
    ("eval/quality_queries.py", "Questionnaire.of", "default_rng(0)"): (
        "which sets of three columns are asked about: public"
    ),
    (
        "dpsynth/tables/simulated.py",
        "_Draws.__init__",
        "default_rng(seed)",
    ): "rows that belong to no real person",
    (
        "dpsynth/tables/linked/simulated.py",
        "simulate_cohort",
        "default_rng(seed)",
    ): "histories that belong to no real person",
    (
        "dpsynth/encoding/column_codecs.py",
        "CategoryCoder.read",
        "default_rng(0)",
    ): "a category draws nothing",
    # evaluations and audits
    ("dpsynth/assessment/attack_audit.py", "audit_run", "default_rng(seed)"): INTERNAL,
    ("dpsynth/assessment/charged_audit.py", "audited_on_real", "default_rng(seed)"): (
        "canaries and their coins, which the auditor knows; the noise has no seed"
    ),
    ("dpsynth/assessment/training_audit.py", "audited_training", "default_rng(seed)"): (
        "canaries, their coins and synthetic rows; the noise has no seed"
    ),
    (
        "dpsynth/assessment/shadow_design.py",
        "ShadowDesign.of",
        "default_rng([seed, STREAM])",
    ): INTERNAL,
    (
        "dpsynth/assessment/shadow_design.py",
        "ShadowDesign.dealt",
        "default_rng([self.seed, STREAM, number])",
    ): (INTERNAL),
    ("eval/attacks/audit.py", "attacked", "default_rng(seed)"): INTERNAL,
    ("eval/attacks/audit.py", "attacked", "default_rng([seed, *attack.key.encode()])"): INTERNAL,
    ("eval/attacks/canaries.py", "_falls", "default_rng(0)"): INTERNAL,
    ("dpsynth/assessment/cohort_sides.py", "CohortSides.read", "SeededEntropy(seed)"): ORDER,
    ("dpsynth/assessment/cohort_sides.py", "CohortSides.read.real", "SeededEntropy(seed)"): ORDER,
    ("dpsynth/encoding/linked/summaries.py", "summaries", "default_rng(seed)"): INTERNAL,
    ("eval/longitudinal/evaluation.py", "evaluate_histories", "default_rng(seed)"): INTERNAL,
    (
        "eval/longitudinal/pictures.py",
        "synthetic_pictures",
        "default_rng(seed)",
    ): "which synthetic patients are shown",
    ("eval/evaluation.py", "_parts", "default_rng(seed)"): INTERNAL,
    ("eval/fidelity/joints.py", "_sets", "default_rng(SEED)"): INTERNAL,
    ("eval/overview.py", "_scores", "default_rng(0)"): INTERNAL,
    ("eval/fidelity/counting_queries.py", "queries", "default_rng(SEED)"): INTERNAL,
}


@functools.cache
def sources() -> list[tuple[str, ast.Module]]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())) for path in paths]


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
        "dpsynth/synthesis/cohort_replicates.py",
        "dpsynth/assessment/cohort_sides.py",
        "models/histories/networks/autoregressive.py",
        "models/histories/networks/tvae.py",
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
