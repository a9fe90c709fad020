"""Each place that makes or seeds a generator of random numbers, with why it hides nothing."""

from __future__ import annotations

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
    ("dpsynth/assessment/shadow_models.py", "ShadowDesign.cohort", "OsEntropy()"): OS,
    ("dpsynth/assessment/shadow_models.py", "fit_and_draw", "OsEntropy()"): OS,
    ("models/outside/desk.py", "OutsideGenerator.rehearse", "OsEntropy()"): OS,
    ("models/generators/training.py", "assist", "OsEntropy()"): OS,
    ("models/outside/desk.py", "OutsideGenerator.rehearse", "default_rng(0)"): (
        "made-up rows of a rehearsal, of which nothing is kept"
    ),
    ("dpsynth/stats/charged_answers.py", "charged_answers", "OsEntropy()"): OS,
    ("dpsynth/stats/axes.py", "Axis.of", "default_rng(0)"): (
        "categories are written as they are declared: nothing is drawn"
    ),
    ("dpsynth/stats/perturbing.py", "perturb", "OsEntropy()"): OS,
    ("dpsynth/stats/perturbing.py", "Categories.of", "default_rng(0)"): (
        "categories are written as they are declared: nothing is drawn"
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
    # rows on request, drawn from a run with the user's seed; shares of a condition have a fixed one
    ("dpsynth/synthesis/completion.py", "Completion.frame", "default_rng(seed)"): POST,
    ("dpsynth/synthesis/sampler.py", "RowSampler.share", "default_rng(0)"): POST,
    ("dpsynth/synthesis/sampler.py", "PatientSampler.pilot", "default_rng(0)"): POST,
    ("models/generators/conditioned.py", "ConditionedNetwork._of", "default_rng(0)"): POST,
    ("models/marginals/binning.py", "least_narrowed", "default_rng(0)"): POST,
    ("dpsynth/encoding/code_values.py", "code_ends", "default_rng(0)"): (
        "categories stand for one cell each: nothing is drawn"
    ),
    # networks: weights are trained over, and released; the latent noise comes from elsewhere
    ("models/generators/tvae.py", "Network.__init__", "default_rng()"): (
        "a place for the latent noise, fresh; a fit puts a generator of its source there"
    ),
    ("models/generators/autoregressive.py", "Autoregressive.network_of", "Generator()"): WEIGHTS,
    ("models/generators/autoregressive.py", "Autoregressive.network_of", "manual_seed(seed)"): (
        WEIGHTS
    ),
    ("models/generators/tvae.py", "Tvae.network_of", "Generator()"): WEIGHTS,
    ("models/generators/tvae.py", "Tvae.network_of", "manual_seed(seed)"): WEIGHTS,
    # offers of rules after a fit: shuffles drawn rows, and nothing else
    ("dpsynth/synthesis/offered_rules.py", "_orders", "default_rng(0)"): (
        "shuffles values that the generator drew; no private row is near"
    ),
    ("eval/longitudinal/rows.py", "_rules_of_patients", "default_rng(0)"): (
        "draws cells within codes to try rules on them; its shares stay in the office"
    ),
    # the latent model: normal variables that no patient has been near
    ("models/histories/latent/variables.py", "CodeVariables.of", "default_rng(0)"): (
        "points of a normal law, the same each time: offsets are found by what is released"
    ),
    ("models/histories/steps/distilled.py", "distilled", "Generator()"): WEIGHTS,
    ("models/histories/steps/distilled.py", "distilled", "manual_seed(seed)"): WEIGHTS,
    ("models/histories/steps/distilled.py", "restored_network", "Generator()"): WEIGHTS,
    ("models/histories/steps/distilled.py", "restored_network", "manual_seed(0)"): WEIGHTS,
    ("models/histories/networks/score.py", "Score.__init__", "Generator()"): WEIGHTS,
    ("models/histories/networks/score.py", "Score.__init__", "manual_seed(0)"): WEIGHTS,
    ("models/histories/networks/score.py", "_copy", "Generator()"): WEIGHTS,
    ("models/histories/networks/score.py", "_copy", "manual_seed(0)"): WEIGHTS,
    ("models/histories/steps/log_linear.py", "fitted_network", "Generator()"): WEIGHTS,
    ("models/histories/steps/log_linear.py", "fitted_network", "manual_seed(0)"): WEIGHTS,
    (
        "models/histories/networks/autoregressive.py",
        "AutoregressiveHistories._canaries",
        "SeededEntropy(0)",
    ): "which steps of canaries are kept, in an audit: they belong to no real person",
    ("models/generators/ctgan.py", "Ctgan._residual", "Generator()"): WEIGHTS,
    ("models/generators/ctgan.py", "Ctgan._residual", "manual_seed(seed)"): WEIGHTS,
    ("models/generators/ctgan.py", "Ctgan.fit", "Generator()"): WEIGHTS,
    ("models/generators/ctgan.py", "Ctgan.fit", "manual_seed(int(rng.integers(2 ** 62)))"): WEIGHTS,
    ("models/generators/ctgan.py", "GeneratorTrainer.__init__", "Generator()"): (
        "weights that the critic's take the place of at once"
    ),
    # drawn rows by which a model is judged beside what was released
    ("models/marginals/released.py", "Released.judged", "default_rng(0)"): POST,
    ("models/marginals/contrasts/factors.py", "_points", "default_rng(0)"): POST,
    # a bound on likelihoods of an audit: after the fit, and the same each time
    ("models/generators/tvae.py", "Tvae._log_prob_of_bins", "default_rng(0)"): POST,
    # synthetic rows and what is made from them
    ("dpsynth/synthesis/sampler.py", "stream_of", "default_rng([seed, block])"): POST,
    (
        "dpsynth/synthesis/replicates.py",
        "seeds_of",
        "SeedSequence([seed, number])",
    ): POST,
    ("dpsynth/synthesis/replicates.py", "Replicates.refit", "SeededEntropy(of_noise)"): (
        "noise of a refit to synthetic rows: it hides nobody"
    ),
    ("dpsynth/synthesis/replicates.py", "bootstrapped", "default_rng(seed)"): POST,
    (
        "dpsynth/assessment/training_audit.py",
        "PlantedHistories.black",
        "default_rng(self.seed)",
    ): "a cohort drawn from what a fit on synthetic histories keeps",
    # forecasts: rows of public facts or of a release, before any private row is read
    (
        "dpsynth/forecasts/forecast.py",
        "simulate_fit",
        "SeededEntropy(seed)",
    ): "noise of a fit to rows that belong to nobody: it hides nobody",
    (
        "dpsynth/forecasts/forecast.py",
        "simulate_fit",
        "default_rng([seed, units])",
    ): "rows of public facts or of a release: they belong to nobody",
    (
        "dpsynth/forecasts/rows.py",
        "_with_lawful_levels",
        "default_rng(0)",
    ): "rows of public facts, by which a usual category is chosen",
    ("dpsynth/forecasts/errors.py", "_pairs", "default_rng(SEED)"): (
        "which pairs of columns are compared: public"
    ),
    ("dpsynth/forecasts/errors.py", "_triples", "default_rng(SEED)"): (
        "which triples of columns are compared: public"
    ),
    ("dpsynth/forecasts/errors.py", "_spread", "default_rng(SEED)"): (
        "which subgroups of a forecast are compared"
    ),
    ("eval/quality_queries.py", "Questionnaire.of", "default_rng(0)"): (
        "which sets of three columns are asked about: public"
    ),
    (
        "dpsynth/tables/simulated.py",
        "_Draws.__init__",
        "default_rng(seed)",
    ): "rows that belong to no real person",
    (
        "dpsynth/tables/simulated.py",
        "simulate_cohort",
        "default_rng(seed)",
    ): "histories that belong to no real person",
    (
        "dpsynth/encoding/column_codecs.py",
        "CategoryCoder.read",
        "default_rng(0)",
    ): "a category draws nothing",
    # evaluations and audits
    ("dpsynth/assessment/attack_audit.py", "audit", "default_rng(seed)"): INTERNAL,
    ("dpsynth/assessment/charged_audit.py", "audited_on_real", "default_rng(seed)"): (
        "canaries and their coins, which the auditor knows; the noise has no seed"
    ),
    ("dpsynth/assessment/training_audit.py", "audited_training", "default_rng(seed)"): (
        "canaries, their coins and synthetic rows; the noise has no seed"
    ),
    (
        "dpsynth/assessment/shadow_models.py",
        "ShadowDesign.of",
        "default_rng([seed, STREAM])",
    ): INTERNAL,
    (
        "dpsynth/assessment/shadow_models.py",
        "ShadowDesign.dealt",
        "default_rng([self.seed, STREAM, number])",
    ): (INTERNAL),
    ("eval/attacks/audit.py", "AuditPieces.sources", "default_rng(self.seed)"): INTERNAL,
    ("eval/attacks/audit.py", "people_of", "default_rng(seed)"): INTERNAL,
    ("eval/attacks/audit.py", "attacked", "default_rng([seed, *attack.key.encode()])"): INTERNAL,
    ("eval/attacks/canaries.py", "_falls", "default_rng(0)"): INTERNAL,
    ("dpsynth/assessment/evaluation.py", "RealHistories.beside", "SeededEntropy(seed)"): ORDER,
    ("dpsynth/assessment/evaluation.py", "RealHistories.read.coded", "SeededEntropy(seed)"): ORDER,
    ("dpsynth/encoding/summaries.py", "summaries", "default_rng(seed)"): INTERNAL,
    ("eval/longitudinal/evaluation.py", "evaluate_histories", "default_rng(seed)"): INTERNAL,
    (
        "eval/longitudinal/pictures.py",
        "synthetic_pictures",
        "default_rng(seed)",
    ): "which synthetic patients are shown",
    ("eval/evaluation.py", "_Pieces.__call__", "default_rng(self.seed)"): INTERNAL,
    ("eval/fidelity/relations.py", "_sets", "default_rng(SEED)"): INTERNAL,
    ("eval/fidelity/relations.py", "correlation", "default_rng(SEED)"): INTERNAL,
    ("eval/overview.py", "_scores", "default_rng(0)"): INTERNAL,
    ("eval/fidelity/summary.py", "queries", "default_rng(SEED)"): INTERNAL,
}
