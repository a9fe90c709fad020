"""Which generator of linked tables `auto` takes, and what it runs.

Nothing here reads data, and nothing here imports a heavy library: a plan is made, and a certificate
checked, without torch.
"""

from __future__ import annotations

from dataclasses import replace

from dpsynth.models.histories.domain import WIDE, HistoryDomain, HistoryTable
from dpsynth.models.histories.latent import PatientTable, is_number
from dpsynth.models.histories.networks.training import WITH_A_STEP, scoring, trained_tables
from dpsynth.models.histories.persons import PersonTable, learns_soon
from dpsynth.models.histories.settings import shares_of_histories
from dpsynth.models.registry import COHORT, spec_of
from dpsynth.privacy import PrivacyBudget, Share, gaussian_mu

NETWORK, DISTILLED, LATENT = "autoregressive", "distilled", "latent"
MOST_FACTS = 400
"""Columns of the table of patients, up to which the latent model learns in a few minutes."""
ENOUGH = 10_000
"""Patients with a step times the budget's mu, from which on DP-SGD pays."""


def choose_linked(
    domain: HistoryDomain, budget: PrivacyBudget, *, declared: bool = False, found: bool = False
) -> tuple[str, str]:
    """Choose a generator of linked tables from public facts; returns its name and the reason.

    The latent model keeps what is declared of histories, and values of every test in their
    distribution. On simulated hospitals of 3 000 and 20 000 patients, with 6 and 37 tests, and with
    rows of 12 numbers, it was nearer to the source in seven or all of eight facts, and took a fifth
    to a half of the time. It tells the codes of a row by the first one, so rows of many codes are
    left to a network, and so are codes that a fit finds (``found``). Its time grows by the square
    of the facts of a patient.

    There, a noisy gradient of patients tells more of pairs of columns than counts for the same
    budget, where noise allows. The signal is the number of patients who have a step at all, times
    the budget's mu. How many they are is private, so a quarter of the declared population is taken.
    It paid at a signal of 10 200 and of 28 500. Less has not been measured. Without DP-SGD, a
    network that learns from the mixture of the table of patients was better than the mixture, or as
    good; where that table has very many codes, it would take longer than all else.
    docs/benchmarks.md, Histories, has the figures.
    """
    if declared:
        return LATENT, "it keeps what is declared of histories"
    facts = len(PatientTable(domain).columns)
    if (
        not found
        and facts <= MOST_FACTS
        and not any(codes_in(table) >= WIDE for table in domain.tables)
    ):
        return LATENT, f"no table has rows of {WIDE} columns of codes or more"
    counting = DISTILLED if learns_soon(PersonTable(domain)) else COHORT
    if not trained_tables(domain):
        return counting, (
            f"counts show more than DP-SGD where no table has rows of {WIDE} columns or more"
        )
    signal = domain.population / WITH_A_STEP * gaussian_mu(budget.epsilon, budget.delta)
    if signal < ENOUGH:
        return counting, (
            "for so few patients, or so small a budget, DP-SGD has not been shown to pay"
        )
    return NETWORK, (
        "with so many patients, DP-SGD adds what counts of the same budget do not show"
    )


def codes_in(table: HistoryTable) -> int:
    """Return how many columns of codes a row of a table has, at most."""
    return max(sum(not is_number(value) for value in series.values) for series in table.series)


def shares_of_linked(model: str, domain: HistoryDomain, budget: PrivacyBudget) -> tuple[Share, ...]:
    """Name every mechanism that a fit of a generator of linked tables runs, with its share.

    Args:
        model: the generator's name.
        domain: public facts of the tables.
        budget: of the whole fit.
    """
    if model == LATENT:
        from dpsynth.models.histories.latent import shares_of_latent

        return shares_of_latent(domain, budget)
    shares = shares_of_histories(domain, budget)
    if not spec_of(model).neural:
        return shares
    steps = scoring(domain)
    rest = 1.0 - steps.fraction
    return (*(replace(one, fraction=rest * one.fraction) for one in shares), steps)
