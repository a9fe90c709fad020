"""The audit in the internal report: its verdict first, then each attack, the controls, settings.

A pure function of the document `audit.json`. Accounting is the proof and an audit is an attack: the
page never makes one number of both, and says beside each attack that failed what it could have
seen.

Epsilon in an audit: as claimed, as attacks prove it, and as they would have seen it.

The claim is an upper bound and comes from accounting. What attacks prove are lower bounds. They
stand on one axis, with marks of their own, and are never made one number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dpsynth._util.formatting import at_most
from dpsynth.eval.attack_stats.table_attack import AFTER, BEFORE
from dpsynth.eval.attacks import Sight, false_alarms, missed_leaks, sights, verdict_of
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.report import (
    Block,
    Chart,
    Heading,
    Lines,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    Shown,
    audit_formatting,
    charts,
    counted,
    expected,
    figure,
    formatting,
    joined,
    listed,
    present,
    sentence,
)
from dpsynth.eval.report.audit_formatting import family_name, origin, plugins
from dpsynth.eval.report.sections import attacks

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
        (*glance(audit), *leak(audit)),
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
        *attacks.table_sections(audit, BEFORE),
        *attacks.training_sections(audit),
        *attacks.table_sections(audit, AFTER),
        *attacks.of_plugins(audit),
        *present((controls(audit), settings(audit))),
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


# What the reference of a measure is whose key begins so; of all others it is a table without leak.
_REFERENCES = {
    "distance_ratio": "other people",
    "training_epsilon": "claimed",
    "tpr": "by guessing",
}
_LEFT_OUT = {
    **{one.key: one.omitted_as for one in ATTACKS if one.section == BEFORE},
    "training": "the training itself, by canaries",
    **{one.key: one.omitted_as for one in ATTACKS if one.section == AFTER},
    "shadows": "shadow models, which train the generator many times and take long",
}
_OF_TABLES = [one.key for one in ATTACKS]


def measures(audit: Audit) -> list[tuple[str, list[Shown]]]:
    """Return all measures of an audit, with their references and meanings."""
    entries = audit.get("measures") or {}
    group = [_show(key, one) for key, one in entries.items()]
    return [("Attacks", group)] if group else []


def _show(key: str, entry: Mapping[str, Any]) -> Shown:
    reference = entry.get("reference")
    places = formatting.decimals(map(entry.get, ("value", "low", "high", "reference")))
    note = f"[best {figure(float(entry['best']))}]" if "best" in entry else ""
    if reference is not None:
        name = next((n for stem, n in _REFERENCES.items() if key.startswith(stem)), "without leak")
        note = f"[{name} {figure(float(reference), places)}]"
    value = formatting.estimate(entry, places)
    return Shown(key, entry["title"], value, note, "", Markup(""), entry.get("n"), entry["meaning"])


def settings(audit: Audit) -> Section | None:
    """Return the settings, and how long each part took."""
    blocks: list[Block] = []
    if lines := list(_flat(audit.get("settings") or {})):
        rows = tuple(Row((name, value)) for name, value in lines)
        blocks.append(ReportTable("Settings", ("Setting", "Value"), rows))
    times = audit.get("seconds") or {}
    if times:
        times = {name: float(value) for name, value in times.items()}
        rows = tuple(
            Row((family_name(audit, n).replace("_", " "), _time(s))) for n, s in times.items()
        )
        blocks.append(ReportTable.of("Run times", ("Part", "Time"), rows))
    if not blocks:
        return None
    whole = f"; {_time(sum(times.values()))} in all" if times else ""
    finding = f"{counted(len(lines), 'setting')}{whole}"
    return Section("settings", "Settings and run times of the audit", finding, tuple(blocks))


def _flat(settings: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting under its whole name."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{stem}{name}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield f"{stem}{name}", listed(value, 12) or "none"
        elif isinstance(value, bool) or value is None:
            yield f"{stem}{name}", {True: "yes", False: "no", None: "none"}[value]
        else:
            yield f"{stem}{name}", f"{value:g}" if isinstance(value, float) else str(value)


def _time(seconds: float) -> str:
    """Write a time.

    >>> _time(3.21), _time(75), _time(7300)
    ('3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def notes(audit: Audit) -> list[str]:
    """Return the notes of an audit, and a line for each attack that was not made."""
    lines = [sentence(note) for note in audit.get("notes") or []]
    parts = audit.get("parts") or {}
    missing = [name for name in _LEFT_OUT if not parts.get(name)]
    if audit.get("tables") is None:
        missing = [name for name in missing if name not in _OF_TABLES]
        lines.append("No table was attacked: this is an audit of a training alone.")
    lines += [f"Not attacked: {_LEFT_OUT[name]}." for name in missing]
    lines += [f"{origin(plugin)}." for plugin in plugins(audit)]
    if not audit.get("controls"):
        text = "No control was played, so that nothing shows that the attacks can see a leak."
        lines.append(text)
    return lines


def leak(audit: Audit) -> list[Block]:
    """Return epsilon on one axis: as claimed, as proved by attacks, as it would have been seen."""
    claimed = _claim(audit)
    attacks = _leaks(audit)
    if not attacks:
        return []
    rows = []
    if claimed is not None:
        words = "the proof, in the certificate: at most this"
        if claimed["delta"] is not None:
            words += f" (delta {figure_of(claimed['delta'])})"
        rows.append(Row(("Claimed", audit_formatting.epsilon(claimed["epsilon"]), words)))
    for attack in attacks:
        rows += _leak_rows(attack, claimed)
    table = Lines(
        "Epsilon, as claimed and as attacked", ("What", "Epsilon", "What it says"), tuple(rows)
    )
    value = None if claimed is None else float(claimed["epsilon"])
    label = "Epsilon claimed, proved by attacks and visible to them: the figures are in the table"
    height = 96 + 34 * (len(attacks) + (value is not None))
    picture = Chart("Epsilon on one axis", label, charts.leaks(value, attacks), height)
    text = (
        "Epsilon measures a leak: 0 is none, and at epsilon e the odds that somebody is in the "
        "data change for an attacker by a factor of 2.72 to the power of e at most. The claim "
        "is an upper bound, and proved. Attacks prove lower bounds, with a confidence of 95 %: the "
        "truth lies between if the claim holds, and a low bound may mean a weak attack."
    )
    return [
        Heading("Epsilon: claimed, proved by attacks, and visible to them"),
        Paragraph(text),
        Pictures((picture,), "wide", key="leaks"),
        table,
    ]


def figure_of(value: float) -> str:
    """Write a small number as people write it.

    >>> figure_of(1e-06)
    '1e-6'
    """
    return f"{value:g}".replace("e-0", "e-")


def _leak_rows(leak: charts.Leak, claimed: Mapping[str, Any] | None) -> list[Row]:
    rows = []
    if leak.proved is not None:
        above = claimed is not None and leak.proved > claimed["epsilon"]
        words = "proved by the attack: at least this" + "; above the claim" * above
        words = words if leak.proved else "the attack proved nothing"
        rows.append(Row((leak.name, f"≥ {audit_formatting.at_least(leak.proved)}", words), above))
    if leak.seen is not None:
        words = "least leak that the attack would have seen, with a probability of 90 %"
        rows.append(Row((leak.name, at_most(leak.seen), words)))
    return rows


def _claim(audit: Audit) -> Mapping[str, Any] | None:
    """Return epsilon and delta as claimed: of the run, else as the attacks were told."""
    parts = audit.get("parts") or {}
    for source in (
        audit.get("run"),
        (parts.get("training") or {}).get("claim"),
        (parts.get("membership") or {}).get("ceiling"),
    ):
        if source and source.get("epsilon") is not None:
            return {"epsilon": source["epsilon"], "delta": source.get("delta")}
    return None


def _leaks(audit: Audit) -> list[charts.Leak]:
    """Return what each attack proves of epsilon, and the least that it would have seen."""
    parts = audit.get("parts") or {}
    proved: dict[str, tuple[str, float]] = {}
    for view in (parts.get("membership") or {}).get("attacks") or []:
        if view["group"] == "everyone" and view.get("epsilon"):
            proved[f"membership:{view['key']}"] = (
                f"Membership: {view['key']}",
                view["epsilon"]["value"],
            )
    for view in (parts.get("training") or {}).get("views") or []:
        if view.get("epsilon") is not None:
            proved[f"training:{view['view']}"] = (f"Canaries, {view['view']} box", view["epsilon"])
    if (parts.get("shadows") or {}).get("epsilon") is not None:
        proved["shadows"] = ("Shadow models", parts["shadows"]["epsilon"])
    least = {
        view["key"]: float(view["least"])
        for view in audit.get("powers") or []
        if view["unit"] == "epsilon" and view.get("least") is not None
    }
    leaks = [charts.Leak(name, v, least.get(key)) for key, (name, v) in proved.items()]
    rest = [key for key in least if key not in proved]
    return leaks + [charts.Leak(audit_formatting.named(audit, k), None, least[k]) for k in rest]
