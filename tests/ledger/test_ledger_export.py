"""The ledger's export: whole, without secrets, safe to open, and the same figures as everywhere."""

from __future__ import annotations

import base64
import errno
import json
import math
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth._util.formatting import shown
from dpsynth.errors import InputError
from dpsynth.ledger.actions import adopt, enter_release, sign, void
from dpsynth.ledger.chain import Head
from dpsynth.ledger.entry import Spent, Status
from dpsynth.ledger.ledger import Entry, Ledger
from dpsynth.ledger.state import Adopted, State, past_of
from dpsynth.ledger.statements.balances import Account, accounts
from dpsynth.ledger.statements.export import exported
from dpsynth.ledger.statements.page import factor, figure, one_in, page
from dpsynth.ledger.statements.snapshot import Snapshot
from dpsynth.policy.limits import Cap, Caps
from dpsynth.policy.policy import Policy
from dpsynth.privacy.events import JointHistograms
from dpsynth.privacy.unit import EACH_ROW

Reserve = Callable[..., Entry]
Capped = Callable[..., Policy]

SOURCE = "5eed" * 16
BASIS = "board 2026-01"


class Page(HTMLParser):
    """The tags of a page, its text, and the alternatives of its pictures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: list[str] = []
        self.feed(html)
        self.text = " ".join("".join(self.pieces).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    @property
    def pictures(self) -> list[str]:
        return [attrs["aria-label"] or "" for tag, attrs in self.tags if tag == "svg"]


def events(mu: float = 0.1) -> dict[str, Any]:
    return {"events": [JointHistograms("one-way", 4, 1, 1.0).with_mu(mu).to_dict()]}


def now() -> datetime:
    return datetime.now(UTC)


def read(book: Ledger, folder: Path, **options: Any) -> Page:
    return Page(exported(book, folder / "page.html", html=True, **options).read_text())


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Be somebody, from here on."""
    return lambda name: monkeypatch.setenv("DPSYNTH_USER", name)


@pytest.fixture
def full(sqlite: Ledger, reserve: Reserve, capped: Capped, person: Callable[[str], None]) -> Ledger:
    """A ledger with every kind of record."""
    person("chair")
    adopt(sqlite, capped(9, name="interim rules"))
    caps = {
        "release": {"epsilon": 0.5, "basis": "the law on small steps"},
        "year": {"epsilon": 1, "basis": "minutes of the ethics board"},
        "total": {"epsilon": 4, "basis": "the directorate"},
    }
    tier = {"caps": {"total": {"epsilon": 0.7, "basis": "pilot study"}}, "releases_a_year": 2}
    more = {
        "name": "office 2026",
        "tiers": {"rare": tier, "plain": {}},
        "datasets": {"diabetes": ["d-2019", "d-2020"], "oncology": ["o-1"]},
        "minimum_population": {"value": 5000, "basis": "data protection officer"},
        "models": ["independent", "tvae"],
        "allow_refuse": False,
        "sign_off": {"people": 2},
    }
    adopt(sqlite, capped(1, delta=1e-5, caps=caps, **more))
    person("curie")
    released = reserve(sqlite, "d-2019", epsilon=0.3, tier="rare", purpose="rare forms")
    sqlite.begin(released.id)
    sqlite.saw(released.id, SOURCE)
    sqlite.charge(released.id)
    failed = reserve(sqlite, "d-2020", epsilon=0.45, tier="plain", plan=events())
    sqlite.begin(failed.id)
    sqlite.fail(failed.id, "MemoryError")
    voided = reserve(sqlite, "d-2020", epsilon=0.2, tier="plain")
    void(sqlite, voided.id, "wrong schema")
    waiting = reserve(sqlite, "cardio", epsilon=0.1, tier="plain")
    sqlite.charge(waiting.id)
    for name in ("noether", "hopper"):
        person(name)
        sign(sqlite, released.id, "seen by the board")
    sign(sqlite, waiting.id)
    enter_release(sqlite, released.id, "a" * 64)
    return sqlite


def test_json_holds_the_whole_ledger(full: Ledger, tmp_path: Path) -> None:
    target = tmp_path / "ledger.json"
    assert exported(full, target) == target
    found, state = json.loads(target.read_text()), full.state()
    assert (found["format"], found["version"], found["internal"]) == ("dpsynth-ledger", 1, True)
    assert (found["ledger"], found["created"]) == (full.id, full.facts.created)
    assert found["head"] == {"number": len(full.records()), "hash": full.records()[-1].hash}
    assert found["entries"] == json.loads(json.dumps([e.to_dict() for e in state.entries]))
    assert found["policy"]["document"] == state.adopted[-1].policy.to_dict()
    assert found["policy"]["digest"] == state.adopted[-1].policy.digest
    assert found["policy"]["adopted"] == {"at": state.adopted[-1].at, "who": "chair"}
    assert [one["document"]["name"] for one in found["earlier_policies"]] == ["interim rules"]


def test_json_accounts_are_those_of_the_ledger_and_of_idle_groups(
    full: Ledger, tmp_path: Path
) -> None:
    found = json.loads(exported(full, tmp_path / "l.json").read_text())["accounts"]
    assert list(found) == ["cardio", "diabetes", "oncology"]
    for account in accounts(full.state(), datetime.now(UTC), compose=True):
        assert found[account.name] == account.to_dict()
    assert [m["name"] for m in found["diabetes"]["room"]][3:] == ["tier rare: epsilon in all"]
    assert [m["used"] for m in found["diabetes"]["room"]] == [0, 0.75, 0.75, 0.3]
    assert found["oncology"]["fits"] == 0


@pytest.mark.parametrize("html", [False, True])
def test_neither_the_key_nor_a_file_digest_is_exported(
    full: Ledger, tmp_path: Path, html: bool
) -> None:
    assert SOURCE.encode() in (tmp_path / "ledger.sqlite").read_bytes()
    content = exported(full, tmp_path / "out", html=html).read_bytes()
    secrets = (full.key, full.key.hex().encode(), base64.b64encode(full.key), SOURCE.encode())
    for secret in secrets:
        assert secret not in content


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
    attack = "</title><script>alert(1)</script><img src=x onerror='a()'>\"{{ 7*7 }}{% raw %}"
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
    assert "49" not in re.findall(r"\b49\b", found.text)
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
    account = Account("cardio", ("cardio",), Spent.of([entry]), None, None, (), (entry,))
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


def test_the_same_ledger_and_time_give_the_same_bytes(full: Ledger, tmp_path: Path) -> None:
    moment = now() + timedelta(days=40)
    there = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    for html in (False, True):
        first = exported(full, tmp_path / "a", html=html, now=moment).read_bytes()
        assert exported(full, tmp_path / "b", html=html, now=there).read_bytes() == first
        later = exported(full, tmp_path / "c", html=html, now=moment + timedelta(days=1))
        assert later.read_bytes() != first
    with pytest.raises(InputError, match="time zone"):
        exported(full, tmp_path / "d", now=moment.replace(tzinfo=None))


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
    assert any("ends at 0.75; the dashed line is the cap of 4" in one for one in after.pictures)


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
    from dpsynth.policy.rules import room

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
    found = json.loads(exported(sqlite, tmp_path / "l.json").read_text())
    assert (found["entries"], found["accounts"], found["policy"]) == ([], {}, None)
    assert found["head"]["number"] == 0


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


def test_a_cap_that_is_passed_beyond_all_measure_is_null_in_json(
    sqlite: Ledger, reserve: Reserve, capped: Capped, tmp_path: Path
) -> None:
    reserve(sqlite, epsilon=0.5, delta=1e-2)
    adopt(sqlite, capped(1, delta=1e-6))
    room = json.loads(exported(sqlite, tmp_path / "l.json").read_text())["accounts"]["cardio"]
    assert (room["room"][0]["used"], room["room"][0]["left"]) == (None, 0)
    found = read(sqlite, tmp_path, now=now() + timedelta(days=60))
    assert "more than the whole cap of 1 used" in found.text and "inf" not in found.text.split()
    assert any("ends at more than the cap" in picture for picture in found.pictures)


def test_only_the_owner_can_read_it_and_an_older_export_is_replaced(
    full: Ledger, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "ledger.json"
    for _ in range(2):
        exported(full, target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        target.chmod(0o644)
    assert [path.name for path in target.parent.iterdir()] == ["ledger.json"]


def test_the_ledger_is_never_written_over(full: Ledger, tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    link, hard = tmp_path / "link.html", tmp_path / "hard.html"
    link.symlink_to(place)
    hard.hardlink_to(place)
    before = place.read_bytes()
    for target in (place, link, hard):
        with pytest.raises(InputError, match="is the ledger itself"):
            exported(full, target, html=True)
    assert place.read_bytes() == before


@pytest.mark.parametrize("target", ["/", ".", "", "sub", "sub/.."])
def test_a_folder_is_no_file_to_export_to(
    target: str, sqlite: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="it is a folder; name a file"):
        exported(sqlite, target)


def test_a_name_that_is_too_long_is_told(sqlite: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the name is too long"):
        exported(sqlite, tmp_path / ("x" * 300))


STRANGE: list[Any] = [
    *({}, {"events": 5}, {"events": None}, {"events": "all"}, {"events": {"a": 1}}),
    *({"events": [None]}, {"events": [[]]}, {"events": [{"kind": []}]}),
    *({"events": [events()["events"][0] | {"sigma": sigma}]} for sigma in (10**400, 1e300, 1e-300)),
    {"events": [events()["events"][0] | {"histograms": 10**6, "rows_per_unit": 10**6, "sigma": 3}]},
]


@pytest.mark.parametrize("plan", STRANGE)
def test_a_fit_of_events_that_nobody_can_compose_counts_by_its_claim(
    plan: dict[str, Any], sqlite: Ledger, reserve: Reserve, capped: Capped, tmp_path: Path
) -> None:
    adopt(sqlite, capped(1, delta=1e-5))
    spend = past_of(reserve(sqlite, plan=plan)).spend
    assert (spend.epsilon, spend.delta, spend.events) == (0.5, 1e-6, ())
    (account,) = accounts(sqlite.state(), now(), compose=True)
    assert account.composed is None and account.meters[0].used == 0.5
    for html in (False, True):
        exported(sqlite, tmp_path / "out", html=html)


def test_a_full_disk_leaves_the_older_export(
    full: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out" / "ledger.html"
    before = exported(full, target, html=True).read_bytes()

    def fills(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, "no space", str(path))

    monkeypatch.setattr(Path, "write_bytes", fills)
    with pytest.raises(InputError, match="no space is left"):
        exported(full, target, html=True)
    assert [path.name for path in target.parent.iterdir()] == ["ledger.html"]
    assert target.read_bytes() == before


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
