"""No words travel in identities and counts of a bundle's documents; terminals obey none."""

from __future__ import annotations

import pytest

from dpsynth._util.strict_json import parsed
from dpsynth.bundle.checks import Findings
from dpsynth.errors import ArtifactError, Problem, VerificationError

from ..support.forger import Forger

WORDS = "Patient John Doe, diabetes\x1b[2K\r  ok  all is well"


@pytest.mark.parametrize("name", ["entry", "id", "seal", "policy"])
def test_no_identity_of_the_ledger_holds_words(forger: Forger, name: str) -> None:
    forger.edit("privacy.json", lambda document: document["ledger"].update({name: WORDS}))
    findings = forger.findings()
    assert "privacy.json: certificate.ledger." in findings and "John" not in findings


def test_no_version_holds_words(forger: Forger) -> None:
    forger.edit("privacy.json", lambda document: document["accountant"].update(version=WORDS))
    assert "accountant.version is not a valid version" in forger.findings()
    forger.edit("datapackage.json", lambda document: document["dpsynth"].update(writer=WORDS))
    assert "dpsynth.writer is not a valid version" in forger.findings()


@pytest.mark.parametrize("count", [10**60, -(10**60)])
def test_no_count_has_more_digits_than_counts_have(forger: Forger, count: int) -> None:
    forger.edit("privacy.json", lambda document: document["ledger"].update(record=count))
    assert "privacy.json" in forger.findings()
    forger.edit(
        "datapackage.json", lambda document: document["dpsynth"]["drawing"].update(seed=count)
    )
    assert "datapackage.json" in forger.findings()


def test_a_huge_whole_number_or_half_a_character_is_no_document() -> None:
    assert parsed(b'{"a": 9223372036854775807}', "p") == {"a": 2**63 - 1}
    assert parsed(b'{"a": "\\ud83d\\ude00"}', "p") == {"a": "\U0001f600"}
    for content in (b'{"a": 1' + b"0" * 400 + b"}", b'{"a": "\\ud800"}', b'{"\\udfff": 1}'):
        with pytest.raises(ArtifactError, match="not strict JSON"):
            parsed(content, "p")


def test_findings_are_words_that_no_terminal_obeys() -> None:
    findings = Findings()
    findings.add("a\x1b]0;x\x07", "b\n  ok  all is well")
    with findings.step("c"):
        raise ArtifactError("d\x1b[1A\u202e")
    with findings.step("e"):
        raise OverflowError("f")
    findings.problems.append(Problem("g", "h\r"))
    with pytest.raises(VerificationError) as refused:
        findings.raise_if_any()
    message = str(refused.value)
    assert all(line.isprintable() for line in message.split("\n"))
    assert message.count("\n") == 4 and "f" not in message.rsplit("e: ", 1)[1].split("\n")[0][:1]
