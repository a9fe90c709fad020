"""The page of a ledger: who did what, the figures of the accounts, and texts of people as texts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth._util.formatting import shown
from dpsynth.ledger import (
    Account,
    Adopted,
    Head,
    Ledger,
    Spent,
    State,
    accounts,
    adopt,
    exported,
    sign,
    void,
)
from dpsynth.ledger.balances import Snapshot
from dpsynth.ledger.board_page import factor, figure, one_in, page
from dpsynth.ledger.entry import Status
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Cap, Policy
from dpsynth.policy.limits import Caps
from dpsynth.privacy import JointHistograms, rates_of_claim, worst_case_rates
from dpsynth.privacy.unit import EACH_ROW

from ..support.ledger_page import Page, events, now, read

Reserve = Callable[..., Entry]
Capped = Callable[..., Policy]
BASIS = "board 2026-01"


def test_the_page_says_who_did_what(full: Ledger, tmp_path: Path) -> None:
    text = read(full, tmp_path).text
    for words in (
        "office 2026",
        "Internal: this page names people. Do not release it.",
        "3 fits on private data count as spent; 1 more was voided and does not count.",
        "1 fit has been released.",
        "1 completed fit needs more signatures before release: cardio of",
        "rare forms",
        "MemoryError",
        "voided by curie",
        "wrong schema",
        "seen by the board",
        "1 of 2 needed",
        "the law on small steps",
        "minutes of the ethics board",
        "pilot study",
        "at least 5,000 privacy units. Reason: data protection officer",
        "Only these models may be fitted: independent, tvae.",
        "rare (2 releases a year planned), plain.",
        "A release needs 2 signatures",
        "a probability of at most 1 in 100,000",
        "adopted by chair on",
        "interim rules",
        "all releases together, at most 9; delta 0.001",
        full.id,
        full.records()[-1].hash,
        "dpsynth ledger verify --against bundle/",
    ):
        assert words in text, words


def test_the_page_shows_the_figures_of_the_accounts(full: Ledger, tmp_path: Path) -> None:
    found = read(full, tmp_path)
    for account in accounts(full.state(), datetime.now(UTC), compose=True):
        spent = account.spent
        sums = figure(spent.epsilon_sum), figure(spent.delta_sum)
        counted = "Sum: epsilon {} and delta {} for each".format(*sums)
        assert counted in found.text or spent.fits == 0
        for meter in account.meters[1:]:
            used, left = figure(meter.used), figure(meter.left)
            figures = f"{used} of {figure(meter.limit)} used, {left} left"
            assert figures in found.text
            assert any(picture.endswith(figures) for picture in found.pictures)
    assert "epsilon in" not in found.text  # the policy's own names of caps are put in words
    assert "Composed: not known" in found.text  # the plan of one fit has events that nobody knows
    assert "Each single release: cap 0.5; the largest fit so far used 0.45" in found.pictures
    tier = "Tier rare: in total, since the ledger began: 0.3 of 0.7 used, 0.4 left"
    assert tier in found.pictures
    assert "In the last 365 days: 0 of 1 used, 1 left" in found.pictures  # oncology


def test_composed_epsilon_stands_beside_the_sum(
    sqlite: Ledger, reserve: Reserve, tmp_path: Path
) -> None:
    reserve(sqlite, plan=events())
    (account,) = accounts(sqlite.state(), datetime.now(UTC), compose=True)
    assert account.composed is not None and account.composed < account.spent.epsilon_sum
    words = f"Composed, for information: epsilon {figure(account.composed)} at delta 1e-6"
    assert words in read(sqlite, tmp_path).text


def test_the_page_says_what_attacks_on_all_fits_can_reach(
    sqlite: Ledger, reserve: Reserve, tmp_path: Path
) -> None:
    for _ in range(3):
        reserve(sqlite, plan=events())
    (account,) = accounts(sqlite.state(), datetime.now(UTC), compose=True)
    total = account.spent
    assert account.attack_rates == rates_of_claim(total.epsilon_sum, total.delta_sum)
    each = JointHistograms("counts", 4, 1, 1.0).with_mu(0.1)
    assert account.composed_rates == worst_case_rates((each,) * 3)
    assert account.composed_rates.advantage < account.attack_rates.advantage
    text = read(sqlite, tmp_path).text
    assert f"Attacks on all these fits together: {account.attack_rates.words}, by the sum." in text
    assert f"Composed, for information: {account.composed_rates.words}." in text
    assert "were not measured; an audit measures what its attacks reach" in text


def test_every_picture_has_a_text_alternative(full: Ledger, tmp_path: Path) -> None:
    found = [attrs for tag, attrs in read(full, tmp_path).tags if tag == "svg"]
    assert len(found) > 10
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in found)


def test_the_page_runs_nothing_and_loads_nothing(full: Ledger, tmp_path: Path) -> None:
    found = read(full, tmp_path)
    content = (tmp_path / "page.html").read_text()
    for tag, attrs in found.tags:
        assert tag not in {"script", "link", "img", "image", "iframe", "object", "embed", "base"}
        assert tag not in {"a", "form", "use", "video", "audio", "foreignobject"}
        assert not {name for name in attrs if name.startswith("on")}
        assert not attrs.keys() & {"src", "href", "xlink:href", "srcset", "action", "poster"}
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", content, re.IGNORECASE)
    policy = [a["content"] for tag, a in found.tags if a.get("http-equiv")]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_texts_of_people_stay_texts(
    sqlite: Ledger, reserve: Reserve, capped: Capped, person: Callable[[str], None], tmp_path: Path
) -> None:
    attack = "</title><script>alert(1)</script><img src=x onerror='a()'>\"{{ 61*977 }}{% raw %}"
    person("<b onclick=x>boss</b>")
    for name in (f"first {attack}", attack):
        caps = {"total": {"epsilon": 5, "basis": attack}}
        adopt(
            sqlite,
            capped(1, name=name, caps=caps, minimum_population={"value": 5, "basis": attack}),
        )
    entry = reserve(sqlite, purpose=attack)
    void(sqlite, entry.id, attack)
    other = reserve(sqlite, purpose="\u05e9\u05dc\u05d5\u05dd")  # right-to-left letters are letters
    person("<i>second</i>")
    sign(sqlite, other.id, attack)
    found = read(sqlite, tmp_path)
    content = (tmp_path / "page.html").read_text()
    assert not {tag for tag, _ in found.tags} & {"script", "img", "b", "i"}
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert found.text.count(attack) >= 7
    assert str(61 * 977) not in found.text
    assert "<bdi>\u05e9\u05dc\u05d5\u05dd</bdi>" in content


def snapshot_with(purpose: str, who: str) -> Snapshot:
    """A ledger of one fit, without a database."""
    at = "2026-01-01T00:00:00+00:00"
    facts: dict[str, Any] = {"tier": None, "model": "independent", "schema_hash": "f" * 64}
    facts |= {"epsilon": 0.5, "delta": 1e-6, "plan": {"events": []}, "allow_refuse": False}
    facts |= {"population": 9, "policy": None, "version": "1", "host": "elsewhere", "process": 1}
    facts |= {"sign_off": 0, "gates": [], "unit": EACH_ROW}
    head = Head(1, "0" * 64)
    history = (Status(at, "charged", ""),)
    entry = Entry("e" * 32, "cardio", at, who, purpose, head=head, history=history, **facts)
    account = Account("cardio", ("cardio",), Spent.of([entry]), None, None, None, (), (entry,))
    state = State(head, at, (entry,), ())
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    return Snapshot("id", at, moment, "1", state, (account,))


def test_invisible_characters_are_named() -> None:
    """Neither a ledger nor a policy takes them in; the page does not rely on that."""
    hidden = "caf\u202etxt\u2066\u200b\x00\x1b[31m"
    policy = Policy(hidden, 1e-5, Caps(total=Cap(5.0, f"line\n{hidden}")))
    one = snapshot_with(hidden, hidden)
    adopted = (Adopted(one.state.entries[0].at, hidden, policy),)
    content = page(replace(one, state=replace(one.state, adopted=adopted)))
    spelled = "caf[U+202E]txt[U+2066][U+200B][U+0000][U+001B][31m"
    found = Page(content).text
    assert found.count(spelled) >= 5 and f"line {spelled}" in found
    assert not set("\u202e\u2066\u200b\x00\x1b") & set(content)


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=20))
def test_any_text_is_shown_and_changes_no_tag(purpose: str, who: str) -> None:
    found, plain = Page(page(snapshot_with(purpose, who))), Page(page(snapshot_with("p", "w")))
    assert found.tags == plain.tags
    for text in (purpose, who):
        assert shown(text) in "".join(found.pieces)
        assert shown(text).isprintable()
    page(snapshot_with(purpose, who)).encode()  # half characters cannot be encoded


def test_what_is_left_is_that_of_the_given_time(full: Ledger, tmp_path: Path) -> None:
    charged = datetime.fromisoformat(full.state().entries[0].at)
    leaves = charged + timedelta(days=365)
    text = read(full, tmp_path, now=now()).text
    assert f"The oldest of these fits stops counting on {leaves.date()}" in text
    later = exported(full, tmp_path / "l.json", now=leaves + timedelta(days=1)).read_text()
    year, total = json.loads(later)["accounts"]["diabetes"]["room"][1:3]
    assert (year["used"], year["left"], total["used"]) == (0, 1, 0.75)
    after = read(full, tmp_path, now=leaves + timedelta(days=1))
    assert "In the last 365 days: 0 of 1 used, 1 left" in after.pictures
    assert any(
        "ends at 0.75; the dashed line is the cap of 4" in picture for picture in after.pictures
    )


def test_history_rises_with_each_fit_and_falls_after_365_days() -> None:
    one = snapshot_with("p", "w")
    (first,) = one.state.entries
    june = "2026-06-01T00:00:00+00:00"
    ended = (Status(june, "charged", ""),)
    second = replace(first, id="f" * 32, at=june, history=ended, epsilon=0.25)
    void_ = replace(second, id="d" * 32, history=(Status(second.at, "voided", ""),))
    entries = (first, second, void_)
    account = replace(one.accounts[0], entries=entries)
    start, middle = (datetime.fromisoformat(entry.at) for entry in (first, second))
    assert one.history(account, None) == [(start, 0.5), (middle, 0.75)]
    caps = {key: {"epsilon": 2, "basis": BASIS} for key in ("year", "total")}
    policy = Policy.from_dict(
        {"dpsynth_policy": 1, "name": "t", "delta": 1e-3, "caps": caps}, "test"
    )
    from dpsynth.policy import room

    state = replace(one.state, entries=entries, adopted=(Adopted(first.at, "chair", policy),))
    late = replace(one, state=state, at=datetime(2027, 3, 1, tzinfo=UTC))
    year, total = room(policy, state.past(), "cardio", None, late.at)
    assert late.history(account, total) == [(start, 0.5), (middle, 0.75)]
    gone = datetime(2027, 1, 1, 0, 0, 1, tzinfo=UTC)  # a record may be a second old
    assert late.history(account, year) == [(start, 0.5), (middle, 0.75), (gone, 0.25)]


def test_an_empty_ledger_says_so_and_how_to_begin(sqlite: Ledger, tmp_path: Path) -> None:
    text = read(sqlite, tmp_path).text
    assert "No budget has been spent" in text and "How to start" in text
    assert "dpsynth ledger policy office.policy.yaml" in text
    assert "Every fit" not in text
    document = json.loads(exported(sqlite, tmp_path / "l.json").read_text())
    assert (document["entries"], document["accounts"], document["policy"]) == ([], {}, None)
    assert document["head"]["number"] == 0


def test_a_policy_without_fits_shows_its_groups_as_full(
    sqlite: Ledger, capped: Capped, tmp_path: Path
) -> None:
    adopt(sqlite, capped(3, datasets={"women": ["w-1"]}))
    found = read(sqlite, tmp_path)
    assert "No budget has been spent" in found.text and "Adopt the policy" not in found.text
    assert "women No fit counts, so the whole budget is left" not in found.text
    assert "No fit counts, so the whole budget is left." in found.text
    assert "In total, since the ledger began: 0 of 3 used, 3 left" in found.pictures


def test_without_a_policy_nothing_is_capped(
    sqlite: Ledger, reserve: Reserve, tmp_path: Path
) -> None:
    reserve(sqlite, epsilon=7)
    found = read(sqlite, tmp_path, now=now() + timedelta(days=60))
    assert "There is no policy, so no cap applies." in found.text
    (curve,) = found.pictures
    assert curve.startswith("Sum of epsilon") and "ends at 7; no cap applies" in curve


def test_a_cap_that_is_passed_stands_first_and_striped(
    sqlite: Ledger, reserve: Reserve, capped: Capped, tmp_path: Path
) -> None:
    reserve(sqlite, epsilon=3)
    caps = {key: {"epsilon": 2, "basis": BASIS} for key in ("release", "total")}
    adopt(sqlite, capped(1, caps=caps))
    found = read(sqlite, tmp_path)
    figures = "3 of 2 used, over the cap by 1; nothing is left"
    assert f"Over its cap: cardio, in total, since the ledger began: {figures}." in found.text
    assert f"In total, since the ledger began: {figures}" in found.pictures
    assert "That fit was entered under an earlier policy." in found.text
    assert "No cap is exceeded" not in found.text
    stripes = [attrs for tag, attrs in found.tags if tag == "rect" and attrs["class"] == "over"]
    assert len(stripes) > 20 and all(666 <= float(s["x"] or 0) < 1000 for s in stripes[3:])


def test_figures_by_hand() -> None:
    assert [figure(v) for v in (0.0, 0.5, 1e-6, 2, 0.123456, 1.5e-10)] == [
        *("0", "0.5", "1e-6", "2", "0.1235", "1.5e-10")
    ]
    assert [factor(e) for e in (0.1, 0.5, 1, 3, 5, 14)] == [
        *("1.11", "1.65", "2.72", "20.1", "149", "over a million")
    ]
    assert [one_in(d) for d in (1e-5, 3e-6, 0.3)] == ["1 in 100,000", "1 in 333,333", "1 in 3"]
    assert shown("a\r\n\tb\u00a0c\ud800") == "a   b c[U+D800]"


@given(st.floats(1e-9, 13.8))
def test_a_factor_is_never_understated(epsilon: float) -> None:
    stated = float(factor(epsilon).replace(",", ""))
    assert math.exp(epsilon) <= stated <= 1.01 * math.exp(epsilon) + 0.01
