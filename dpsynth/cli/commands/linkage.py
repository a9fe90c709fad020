"""``dpsynth linkage``: how many candidate pairs of two registers match, by threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import figure
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import answer_options, require_asked, require_charged
from dpsynth.cli.plan_words import by_budget

if TYPE_CHECKING:
    from dpsynth.stats.linkage import Expectation, Linkage


@click.command(
    epilog="Example:  dpsynth linkage request.yaml pairs.csv --dataset-a births --dataset-b "
    "cancers --epsilon 1 --delta 1e-7 -o linkage/"
)
@click.argument("request", type=click.Path())
@click.argument("pairs", type=click.Path(), required=False)
@click.option(
    "--dataset-a",
    help="Name under which the ledger counts what the people of the first register have spent.",
)
@click.option("--dataset-b", help="Likewise for the second register; both are charged.")
@answer_options("figures")
@output_options
def linkage(
    request: str,
    pairs: str | None,
    dataset_a: str | None,
    dataset_b: str | None,
    epsilon: float | None,
    delta: float,
    wondered: bool,
    output: str | None,
    purpose: str,
    tier: str | None,
    policy: str | None,
    no_ledger: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Count the candidate PAIRS of two registers that match, under differential privacy.

    REQUEST is a YAML or JSON file that names the two registers, the columns of PAIRS, thresholds
    of the score, and how many pairs of a person count. PAIRS has a row for each candidate pair.
    The results are precision, recall and F1 by threshold, with intervals.

    Without PAIRS, nothing is read or charged: the command prints how precise the figures will be.
    With PAIRS, the ledger charges the datasets of both registers, or neither, before the first row
    is read. If people may be in both (same_people), both must be in one group of the policy, which
    is charged once. REQUEST must declare that each pair follows from its own two records alone.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.stats.linkage import LinkageRequest, expectation, what_if
        from dpsynth.stats.linkage import linkage as link

        asked = LinkageRequest.load(request)
        asked.require_own_records()
        require_asked("PAIRS", pairs, wondered=wondered, epsilon=epsilon, output=output)
        if wondered:
            console.result("linkage-what-if", *by_budget(what_if(asked, delta=delta), _values))
            return
        assert epsilon is not None
        if pairs is None:
            found = expectation(asked, asked.plan(epsilon, delta))
            cost = f"cost: epsilon {figure(found.epsilon)}, charged "
            cost += "once, to the budget that both share" if asked.same_people else "to both"
            console.result("linkage-plan", _values(found), [*found.lines(), cost])
            return
        require_charged(dataset_a=dataset_a, dataset_b=dataset_b, output=output)
        assert dataset_a is not None and dataset_b is not None and output is not None
        linked = link(
            pairs,
            asked,
            epsilon=epsilon,
            delta=delta,
            dataset_a=dataset_a,
            dataset_b=dataset_b,
            purpose=purpose,
            tier=tier,
            policy=None if policy is None or no_ledger else Policy.load(policy),
            without_ledger=no_ledger,
            output=output,
        )
        console.result("linkage", *_told(linked, output))


def _values(found: Expectation) -> dict[str, Any]:
    """Return what to expect as values."""
    return {
        "composed_epsilon": found.epsilon,
        "confidence": found.confidence,
        "pairs_off": found.numbers,
        "precision_off": found.precision,
        "recall_off": found.recall,
    }


def _told(found: Linkage, output: str) -> tuple[dict[str, Any], list[str]]:
    """Say what was written and what it cost, as values and as lines."""
    certificate, names = found.certificate, found.request.names
    values = {
        "linkage": output,
        "registers": list(names),
        "epsilon": certificate.epsilon,
        "composed_epsilon": certificate.composed_epsilon,
        "delta": certificate.delta,
        "stamps": list(found.stamps),
    }
    lines = [
        f"linkage     {output}: {len(found.request.thresholds)} thresholds",
        f"cost        epsilon {certificate.epsilon:g}, delta {certificate.delta:g}, charged "
        + (
            f"once, to the budget that {names[0]} and {names[1]} share"
            if certificate.is_joint
            else f"to {names[0]} and to {names[1]}"
        ),
    ]
    if found.stamps:
        lines[1] = lines[1].partition(", charged")[0]
        lines.append(f"stamped     {', '.join(found.stamps)}: not to be released")
    return values, lines
