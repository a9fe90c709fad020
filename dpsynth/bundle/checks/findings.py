"""What a verification found so far: checks that passed, and differences with their places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpsynth._util.formatting import shown
from dpsynth.errors import DpsynthError, Problem, SchemaError, VerificationError


@dataclass
class Findings:
    """Checks that passed, a sentence each, and differences."""

    checks: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @contextmanager
    def step(self, place: str, passed: str | None = None) -> Iterator[None]:
        """Turn an error of one check into a finding; note the check if it found nothing."""
        before = len(self.problems)
        try:
            yield
        except SchemaError as error:
            self.problems += [
                Problem(f"{place}: {problem.place}", problem.message) for problem in error.problems
            ]
        except DpsynthError as error:
            self.problems.append(Problem(place, str(error)))
        except (ArithmeticError, UnicodeError):
            self.problems.append(Problem(place, "has a number or a text that is not possible"))
        if passed is not None and len(self.problems) == before:
            self.checks.append(passed)

    def add(self, place: str, message: str) -> None:
        """Note a difference."""
        self.problems.append(Problem(place, message))

    def extend(self, other: Findings) -> None:
        """Add what another list of findings holds."""
        self.checks += other.checks
        self.problems += other.problems

    def raise_if_any(self) -> None:
        """End a verification that found differences, in words that no terminal obeys.

        Raises:
            VerificationError: with all of them, each once.
        """
        plain = [Problem(shown(problem.place), shown(problem.message)) for problem in self.problems]
        if plain:
            raise VerificationError(list(dict.fromkeys(plain)))
