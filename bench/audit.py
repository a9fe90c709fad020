"""Attack every mechanism many times over, and say how much of its claimed epsilon shows.

usage: audit.py [--only TEXT] [--runs SHARE] [--docs FILE]

Each game (`distinguishing_game`) runs a mechanism on worst-case neighbours, with fresh entropy of
the operating system, and turns the attacker's error rates into the epsilon that they refute. Sound
mechanisms must keep their claim; where the attack is the best one, at least 60 % of the claim must
show, or the game would prove little. The broken twin of each must be caught. Exit code 1 otherwise.

With --docs the table is written between the marks of that file.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import audit_answers
import audit_cohort_fit
import audit_counts
import audit_discovery
import audit_fit
import audit_histories
import audit_history_grains
import audit_links
import audit_local
import audit_networks
import audit_pair_statistics
import audit_selection
import audit_sgd
import audit_votes
from distinguishing_game import FAILS, Game, GameFinding
from pages import write_section

from dpsynth.privacy.entropy import Entropy, OsEntropy


class OfGames(OsEntropy):
    """The same draws for games, which run a mechanism many times without a plan."""

    releasable = False


TIGHT = 0.6
RUNS = {
    audit_counts: 20_000,
    audit_sgd: 8_000,
    audit_selection: 8_000,
    audit_fit: 8_000,
    audit_histories: 8_000,
    audit_history_grains: 8_000,
    audit_cohort_fit: 8_000,
    audit_networks: 8_000,
    audit_pair_statistics: 8_000,
    audit_discovery: 8_000,
    audit_answers: 8_000,
    audit_votes: 8_000,
    audit_links: 8_000,
    audit_local: 8_000,
}
SLOW = {
    "a whole fit: autoregressive": 0.25,
    "a whole fit: tvae": 0.25,
    "a whole fit of histories: cohort": 0.1,
    "a whole fit of histories: autoregressive": 0.1,
    "a whole fit of histories, cohort": 0.05,
    "five times": 0.05,
}  # of those runs: a quarter of a second each


@dataclass(frozen=True)
class Case:
    """A game to play, how often, and whether it must be lost."""

    game: Game
    runs: int
    mutant: bool


def cases(source: Entropy, share: float = 1.0) -> list[Case]:
    """List all games; broken twins need fewer runs, unless they are only a little broken."""
    listed = []
    for module, runs in RUNS.items():
        for mutant, games in ((False, module.sound(source)), (True, module.mutants(source))):
            for game in games:
                part = next((part for text, part in SLOW.items() if text in game.name), None)
                if part is None:
                    part = 0.25 if mutant and module is not audit_selection else 1.0
                listed.append(Case(game, enough(game, round(share * part * runs)), mutant))
    return listed


def enough(game: Game, runs: int) -> int:
    """Return so many runs, or as many as an attack without an error would need."""
    runs = max(100, runs)
    while game.most(runs) <= game.epsilon:
        runs *= 2
    return runs


def verdict(found: GameFinding, *, mutant: bool, few: bool) -> str:
    """Say in a word how a game ended; in capitals where it should not have ended so.

    In fewer runs than usual (``few``) an attack may show little; that says nothing about
    the mechanism.
    """
    if mutant:
        return "refuted" if found.broken else ("not seen in so few runs" if few else "NOT SEEN")
    if found.broken:
        return "REFUTED"
    loose = found.game.tight and found.share < TIGHT and not few
    return "TOO LOOSE" if loose else "stands"


def row(found: GameFinding, runs: int, said: str) -> str:
    """Return a line of the table."""
    game, false, true = found.game, found.false.value, found.true.value
    share = f"{found.share:.0%}" if found.share <= 10 else "over 1000%"
    claim = f"| {game.name} | {game.epsilon:.2f} | {game.delta:g} | {runs:,} "
    return f"{claim}| {false:.3f} | {true:.3f} | {found.refuted:.2f} | {share} | {said} |"


HEADER = (
    "| mechanism | claimed epsilon | delta | runs a side | FPR | TPR | epsilon at least | share |"
    " the claim |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


def main() -> int:
    """Play and print; returns 1 where a game did not end as it must."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="games whose names hold this text")
    parser.add_argument("--runs", type=float, default=1.0, help="share of the usual runs")
    parser.add_argument("--docs", type=Path, help="a file with the marks of the table")
    chosen = parser.parse_args()
    start, lines, bad = time.perf_counter(), [HEADER], 0
    played = [case for case in cases(OfGames(), chosen.runs) if chosen.only in case.game.name]
    print(HEADER, flush=True)
    for case in played:
        finding = case.game.play(case.runs)
        said = verdict(finding, mutant=case.mutant, few=chosen.runs < 1)
        bad += said.isupper()
        lines.append(row(finding, case.runs, said))
        print(lines[-1], flush=True)
    minutes = (time.perf_counter() - start) / 60
    alarms = 2 * FAILS * sum(not case.mutant for case in played)
    print(f"{len(played)} games, {bad} not as they must be, {minutes:.0f} minutes")
    print(f"a sound mechanism is accused with probability {alarms:.1g} at most, all together")
    if chosen.docs:
        write_section(chosen.docs, "\n".join(lines), "audits")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
