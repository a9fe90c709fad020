"""Public gates: each passes on a sound release and fails on one that is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle.format import Audits
from dpsynth.bundle.format.audits import PublicAudit
from dpsynth.bundle.gates import GateResult, Profile, decide, judge
from dpsynth.bundle.gates.profile import RuleCount
from dpsynth.certificate import Certificate, Override
from dpsynth.encoding import typed_frames
from dpsynth.errors import GateError
from dpsynth.schema import Schema

from ..support.public_audit_example import CONTROLS, public_audit, seen

QUIET = Audits("c" * 64, (public_audit(), public_audit(8)))


@pytest.fixture
def certificate(forger: Any) -> Certificate:
    return Certificate.from_dict(forger.read("privacy.json"))


@pytest.fixture
def profile(bundle: Path, every_type: Schema) -> Profile:
    return Profile.of(every_type, typed_frames(bundle / "data/synthetic.parquet", every_type))


def failed(
    certificate: Certificate, profile: Profile, audits: Audits | None = QUIET, **options: Any
) -> dict[str, GateResult]:
    verdicts = judge(certificate, [profile], audits, **options)
    return {verdict.key: verdict for verdict in verdicts if not verdict.passed}


def test_a_sound_release_passes_every_gate(certificate: Certificate, profile: Profile) -> None:
    verdicts = judge(certificate, [profile], QUIET)
    assert [verdict.key for verdict in verdicts] == [
        *("cells", "rules", "accounting", "stamps", "audit", "epsilon", "constant"),
    ]
    assert all(
        verdict.passed and verdict.value <= verdict.limit and verdict.reason for verdict in verdicts
    )
    assert [verdict.key for verdict in verdicts if not verdict.stops] == ["epsilon", "constant"]
    assert verdicts[0].to_dict()["passed"] is True


def test_a_strange_cell_fails(certificate: Certificate, profile: Profile) -> None:
    columns = (replace(profile.columns[0], strange=3), *profile.columns[1:])
    [(key, verdict)] = failed(certificate, replace(profile, columns=columns)).items()
    assert (key, verdict.detail) == ("cells", "age")
    assert verdict.value == 3 / (300 * 9)


def test_a_column_that_the_condition_fixes_is_not_dead(
    certificate: Certificate, profile: Profile
) -> None:
    columns = [
        replace(one, constant=one.column.name in ("sex", "grade")) for one in profile.columns
    ]
    dead = replace(profile, columns=tuple(columns))
    [verdict] = failed(certificate, dead).values()
    assert verdict.detail == "grade, sex" and "condition" not in verdict.reason
    [verdict] = failed(certificate, dead, condition="sex == 'f' and age > 3").values()
    assert verdict.detail == "grade" and "columns that the condition fixes" in verdict.reason


def test_a_broken_rule_fails(certificate: Certificate, profile: Profile) -> None:
    broken = replace(profile, rules=(RuleCount("a < b", 30), RuleCount("b < c", 3)))
    [(key, verdict)] = failed(certificate, broken).items()
    assert (key, verdict.value, verdict.detail) == ("rules", 0.1, "a < b; b < c")


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 2.0}, {"composed_epsilon": 2.5}, {"composed_epsilon": 3.1}, {"delta": 1e-12}],
)
def test_a_claim_that_its_events_do_not_carry_fails(
    certificate: Certificate, profile: Profile, change: dict[str, float]
) -> None:
    assert set(failed(replace(certificate, **change), profile)) == {"accounting"}


def test_a_stamp_fails(certificate: Certificate, profile: Profile) -> None:
    assert failed(certificate, profile, stamps=["seeded-entropy"])["stamps"].value == 1
    alone = failed(replace(certificate, ledger=None), profile)
    assert alone["stamps"].detail == "no-ledger"


def test_a_large_epsilon_informs(certificate: Certificate, profile: Profile) -> None:
    [(key, verdict)] = failed(certificate, profile, most_epsilon=2.5).items()
    assert (key, verdict.stops, verdict.limit) == ("epsilon", False, 2.5)


def test_a_run_that_nobody_attacked_informs(certificate: Certificate, profile: Profile) -> None:
    [(key, verdict)] = failed(certificate, profile, None).items()
    assert (key, verdict.stops, verdict.detail) == ("audit", False, "not audited")
    assert decide(judge(certificate, [profile]), (), None) == ()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (seen(public_audit(), 1, refuted=True), "(white box): the claim is refuted"),
        (
            public_audit(controls=(CONTROLS[0], replace(CONTROLS[1], passed=False))),
            "control 'A fit whose patients are not clipped' failed",
        ),
        (public_audit(controls=()), "no control was played"),
    ],
)
@pytest.mark.parametrize("place", [1, 2])
def test_any_audit_that_refutes_or_fails_stops(
    certificate: Certificate, profile: Profile, broken: PublicAudit, said: str, place: int
) -> None:
    audits = (public_audit(), public_audit(8))
    tampered = (*audits[: place - 1], broken, *audits[place:])
    [(key, verdict)] = failed(certificate, profile, Audits("c" * 64, tampered)).items()
    assert (key, verdict.stops, verdict.value) == ("audit", True, 1)
    assert verdict.detail.startswith(f"audit {place}: ") and verdict.detail.endswith(said)
    with pytest.raises(GateError, match="No audit on synthetic rows refuted the claim"):
        decide((verdict,), (), None)


def test_many_failures_are_named_briefly_and_cleanly(
    certificate: Certificate, profile: Profile
) -> None:
    bad = seen(public_audit(), 0, refuted=True, title="\x1b[2J")
    audits = Audits("c" * 64, (bad,) * 1000)
    detail = failed(certificate, profile, audits)["audit"].detail
    assert detail.endswith("; 995 more") and len(detail) < 500 and "\x1b" not in detail


def test_a_dead_column_informs(certificate: Certificate, profile: Profile) -> None:
    columns = (*profile.columns[:-1], replace(profile.columns[-1], constant=True))
    [(key, verdict)] = failed(certificate, replace(profile, columns=columns)).items()
    assert (key, verdict.stops, verdict.detail) == ("constant", False, "born")


def test_only_gates_that_stop_refuse_a_release(certificate: Certificate, profile: Profile) -> None:
    informing = judge(certificate, [profile], most_epsilon=1.0)
    assert decide(informing, (), None) == ()
    stopping = judge(certificate, [profile], stamps=["not-private"])
    with pytest.raises(GateError, match="not-private"):
        decide(stopping, (), Override("no reason is enough", "A. Smith"))
