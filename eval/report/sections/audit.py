"""The audit in the internal report: its verdict first, then each attack, the controls, settings.

A pure function of the document `audit.json`. Accounting is the proof and an audit is an attack: the
page never makes one number of both, and says beside each attack that failed what it could have
seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dpsynth.eval.attack_stats.table_attack import AFTER, BEFORE
from dpsynth.eval.attacks import Sight, false_alarms, missed_leaks, sights, verdict_of
from dpsynth.eval.report import (
    Block,
    Lines,
    Paragraph,
    Row,
    Section,
    audit_formatting,
    counted,
    expected,
    joined,
    present,
    sentence,
)
from dpsynth.eval.report.sections import audit_settings, epsilon, table_attacks, training

Audit = Mapping[str, Any]
FORMAT, VERSION = "dpsynth-audit", 1
VERDICTS = ("quiet", "found", "failed")

ATTACK_NOT_PROOF = (
    "Accounting is the proof of privacy, and stands in the certificate; an audit is an attack. An "
    "attack that succeeds shows that at least so much leaks. One that does not succeed proves "
    "nothing, but says which leaks it would have seen. The two never make one number."
)


@dataclass(frozen=True)
class Top:
    """What is read first of an audit.

    Attributes:
        tone: "failed", "found" or "quiet".
        verdict: one plain sentence.
        warning: what follows from it; a warning unless the tone is "quiet".
        seen: what the audit could have seen, a sentence each; only if it is quiet.
        blind: attacks that could have seen no leak here, why, and what to change; unless the audit
            is broken.
        proof: that an audit is an attack, and no proof.
        blocks: attacks at a glance, and epsilon on one axis.
    """

    tone: str
    verdict: str
    warning: str
    seen: tuple[str, ...]
    blind: tuple[str, ...]
    proof: str
    blocks: tuple[Block, ...]


def check(audit: Audit) -> None:
    """Refuse what is no audit.

    Raises:
        ValueError: the document is no audit, or one of a later version.
    """
    if audit.get("format") != FORMAT:
        raise ValueError(f"the document is no audit: its format is not {FORMAT}")
    if audit.get("version") != VERSION or audit.get("verdict") not in VERDICTS:
        raise ValueError(f"the audit is not of version {VERSION}; use the dpsynth it is from")


def other_table(audit: Audit, evaluation: Mapping[str, Any]) -> str:
    """Warn if an audit and an evaluation are known to be of different tables or schemas."""
    for words, *path in (
        ("synthetic tables", "tables", "synthetic", "sha256"),
        ("schemas", "schema", "sha256"),
    ):
        known = [_at(one, path) for one in (audit, evaluation)]
        if all(known) and known[0] != known[1]:
            return (
                f"The audit and the evaluation are of different {words}: their SHA-256 differ. "
                "What is said of one does not hold for the other."
            )
    return ""


def _at(document: Mapping[str, Any], path: list[str]) -> Any:
    value: Any = document
    for name in path:
        value = (value or {}).get(name)
    return value


def top(audit: Audit) -> Top:
    """Return the verdict, attacks at a glance, and the picture of epsilon."""
    tone = verdict_of(audit)
    verdict, warning = {"failed": _failed, "found": _succeeded, "quiet": _quiet}[tone](audit)
    return Top(
        tone,
        verdict,
        warning,
        tuple(audit_formatting.seen(audit)) if tone == "quiet" else (),
        () if tone == "failed" else tuple(audit_formatting.blind(audit)),
        ATTACK_NOT_PROOF,
        (*glance(audit), *epsilon.leak(audit)),
    )


def _failed(audit: Audit) -> tuple[str, str]:
    controls = audit.get("controls") or []
    alarms, broken = false_alarms(audit), audit.get("broken") or []
    what = [f"a leak was claimed where there is none ({alarm['title']})" for alarm in alarms]
    what += [f"{one['attack']} ended with an error ({one['error']})" for one in broken]
    what += [] if controls else ["no control was played"]
    rest = (
        "So nothing on this page may be relied on, neither an attack that succeeded nor one that "
        "did not. Repair or repeat the audit first; the section on controls says what went wrong."
    )
    if "training" in (audit.get("parts") or {}) and _trusted(controls, broken):
        rest = (
            "So no attack on the table may be relied on, neither one that succeeded nor one that "
            "did not. Repair or repeat the audit first. The canaries have controls of their own, "
            "all of which passed: what is said of them stands, here and on the public page."
        )
    return f"This audit failed and proves nothing: {joined(what, 3)}.", rest


def _trusted(controls: Sequence[Audit], broken: Sequence[Audit]) -> bool:
    """Whether the controls of the canaries were played, and passed."""
    played = [control for control in controls if str(control["attack"]).startswith("training:")]
    errors = [one for one in broken if one.get("where") == "fits"]
    return bool(played) and all(one["passed"] for one in played) and not errors


def _succeeded(audit: Audit) -> tuple[str, str]:
    hits = [finding for finding in audit.get("findings") or [] if finding["found"]]
    many = len(audit.get("findings") or [])
    verdict = f"{len(hits)} of {counted(many, 'attack')} succeeded: "
    verdict += f"{joined([one['title'] for one in hits], 4)}."
    warning = (
        "What succeeded tells people in the data from other people better than chance explains. "
        "A guarantee limits such success and does not exclude it: compare with what the claim "
        "allows, and do not release the table before the success is understood."
    )
    if any(str(hit["key"]).startswith("training:") for hit in hits):
        warning = (
            "Canaries refute the claim itself: the training leaks more than the certificate says. "
            "Release nothing of this run, nor of others of the same version, until it is "
            f"explained. {warning if len(hits) > 1 else ''}"
        ).strip()
    return verdict, warning


def _quiet(audit: Audit) -> tuple[str, str]:
    many = len(audit.get("findings") or [])
    if not many:
        return (
            "No attack was made.",
            "So this audit says nothing about the table; the notes say why.",
        )
    verdict = f"No attack succeeded: {counted(many, 'attack')} found no leak."
    if many == 1:
        verdict = "The one attack that was made did not succeed."
    if unseen := sum(sight.blind for sight in sights(audit)):
        verdict += f" {unseen} of {many} could not have seen one here."
    return verdict, _excluded(audit)


def _excluded(audit: Audit) -> str:
    if not audit_formatting.seen(audit):
        return "It is not known that the audit would have seen any leak, so that this says little."
    return "This excludes no more than the audit would have seen, with a probability of 90 %:"


def glance(audit: Audit) -> list[Block]:
    """Return a table of all attacks: whether each succeeded, and what it could have seen."""
    powers = {finding["key"]: finding for finding in audit.get("powers") or []}
    sights_of = {sight.key: sight for sight in sights(audit)}
    findings = sorted(audit.get("findings") or [], key=lambda finding: not finding["found"])
    if not findings:
        return []
    rows = []
    for finding in findings:
        power = powers.get(finding["key"])
        could = _could(sights_of[finding["key"]], power)
        word = _word("▲ succeeded", "bad") if finding["found"] else "no success"
        named = str(finding["key"]).startswith("attribute:")  # begins with the column's name
        saw = sentence(finding["sentence"], capital=not named)
        rows.append(Row((finding["title"], word, saw, could), bool(finding["found"])))
    caption = "Each attack, with what it saw and what it could have seen"
    if verdict_of(audit) == "failed":
        caption += "; not to be relied on, as the audit is broken"
    head = ("Attack", "Result", "What was seen", "Could it have seen a leak here?")
    return [Lines(caption, head, tuple(rows))]


def _could(sight: Sight, power: Audit | None) -> str:
    """Say whether an attack could have seen a leak, and what to change if not."""
    measured = sentence(power["sentence"]) if power else ""
    if sight.sees:
        return f"Yes. {measured}"
    change = f" What to change: {sight.remedy}."
    if sight.sees is None:
        return f"Not known: {sight.reason}.{change}"
    if power is not None and sight.reason == power["sentence"]:
        return f"No. {measured}{change}"
    return f"No: {sentence(sight.reason, capital=False)}{change}"


_FAILED = {True: "✗ FAILED", False: "○ not seen"}


def _word(text: str, kind: str) -> Markup:
    return Markup('<strong class="word {}">{}</strong>').format(kind, text)


def sections(audit: Audit) -> list[Section]:
    """Return the sections of an audit; a part that was not played has none."""
    return [
        *table_attacks.sections(audit, BEFORE),
        *training.sections(audit),
        *table_attacks.sections(audit, AFTER),
        *table_attacks.of_plugins(audit),
        *present((controls(audit), audit_settings.settings(audit))),
    ]


def controls(audit: Audit) -> Section | None:
    """Return the controls: tables whose answer is known, and whether the attacks gave it."""
    entries = sorted(audit.get("controls") or [], key=lambda control: bool(control["passed"]))
    if not entries:
        return None
    rows = []
    for control in entries:
        word = (
            "passed" if control["passed"] else _word(_FAILED[control["kind"] == "negative"], "bad")
        )
        when = "kept from an earlier run of this version" if control.get("cached") else "run now"
        attack = f"{audit_formatting.named(audit, control['attack'])}: {expected(control)}"
        cells = (control["title"], word, attack, sentence(control["sentence"]), when)
        rows.append(Row(cells, not control["passed"]))
    text = (
        "The audit is given tables and trainings whose answer is known: some leak on purpose, and "
        "the attack that is named must find it; some leak nothing, and nothing may be found. Where "
        "an attack missed a leak, its silence says nothing here, and what it found stands. An "
        "audit that claimed a leak where there is none proves nothing. Most of these controls use "
        "the real rows at hand. The public page (report.html) tells only those of the audit of "
        "the training, which use invented patients, so they can pass where one here does not."
    )
    missed, rash = len(missed_leaks(audit)), len(false_alarms(audit))
    finding = counted(len(entries), "control") + ("" if missed or rash else ", all of which passed")
    finding += f"; {rash} FAILED: a leak was claimed where nothing leaks" if rash else ""
    finding += f"; {counted(missed, 'leak')} made on purpose not seen" if missed else ""
    head = ("Control", "Result", "Attack, and what is expected", "What was seen", "When")
    table = Lines("Controls; those that failed come first", head, tuple(rows))
    return Section(
        "controls", "Controls: would the attacks see a leak?", finding, (Paragraph(text), table)
    )
