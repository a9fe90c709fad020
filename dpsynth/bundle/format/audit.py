"""One audit of a training that may be published: it was made on synthetic rows only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from dpsynth._util.strict_json import check_keys, names, number, several, truth
from dpsynth.bundle.format.audit_figures import counted, said
from dpsynth.bundle.format.audit_observer import VIEWS, View
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError

BACKGROUND = "run"  # the only one whose audits are public
_MAX_CONTROLS = 50
_MAX_UNITS = 10**9
_MAX_SEED = 2**64


@dataclass(frozen=True)
class AuditClaim:
    """What the fit claims."""

    epsilon: float
    delta: float

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly a claim."""
        check_keys(document, place, names(cls))
        delta = number(document["delta"], f"{place}.delta", above=0)
        if delta >= 1:
            raise ArtifactError(f"{place}.delta: a number below 1 is expected")
        return cls(number(document["epsilon"], f"{place}.epsilon", above=0), delta)


@dataclass(frozen=True)
class AuditControl:
    """A leak that the attack must find (positive), or a fit where it must find nothing (negative).

    Attributes:
        key: by which scripts know it.
        title: what was attacked.
        kind: ``positive`` or ``negative``.
        attack: key of the finding that was looked at.
        passed: whether the attack did as it must.
        sentence: what was seen.
    """

    key: str
    title: str
    kind: str
    attack: str
    passed: bool
    sentence: str

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one control."""
        check_keys(document, place, names(cls))
        if document["kind"] not in ("positive", "negative"):
            raise ArtifactError(f"{place}.kind: positive or negative is expected")
        texts = {
            name: said(document[name], f"{place}.{name}") for name in names(cls) if name != "passed"
        }
        return cls(**texts, passed=truth(document["passed"], f"{place}.passed"))


@dataclass(frozen=True)
class PublicAudit:
    """One audit of the training on a background that was drawn from the run.

    Attributes:
        dpsynth: version that made it.
        model: the generator's name.
        background: where the rows around the canaries came from; always ``run``.
        background_units: how many units they are.
        seed: of background, canaries and coins; the noise has none.
        claim: of the run.
        canaries: how many could be in.
        included: how many were, by a fair coin each.
        views: what each attacker guessed.
        controls: what shows that the attack works.
    """

    dpsynth: str
    model: str
    background: str
    background_units: int
    seed: int
    claim: AuditClaim
    canaries: int
    included: int
    views: tuple[View, ...]
    controls: tuple[AuditControl, ...]

    @property
    def failures(self) -> list[str]:
        """What speaks against the run or the audit: refuted claims, failed or no controls."""
        refuted = [f"{item.title}: the claim is refuted" for item in self.views if item.refuted]
        failed = [f"control '{item.title}' failed" for item in self.controls if not item.passed]
        unproven = [] if self.controls else ["no control was played"]
        return refuted + failed + unproven

    def to_dict(self) -> dict[str, Any]:
        """Write the audit in JSON types."""
        return dict(_plain(asdict(self)))

    @classmethod
    def from_dict(cls, document: Any, place: str = "audit") -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range.
        """
        check_keys(document, place, names(cls))
        if document["background"] != BACKGROUND:
            raise ArtifactError(
                f"{place}.background: only audits on a background that was drawn from the run are "
                "public"
            )
        canaries = counted(document["canaries"], f"{place}.canaries", minimum=1)
        views = several(View.from_dict, document["views"], f"{place}.views", minimum=1, maximum=2)
        if len({view.view for view in views}) < len(views):
            raise ArtifactError(f"{place}.views: {' and '.join(VIEWS)} are expected once")
        controls = f"{place}.controls"
        return cls(
            dpsynth=said(document["dpsynth"], f"{place}.dpsynth"),
            model=said(document["model"], f"{place}.model"),
            background=BACKGROUND,
            background_units=counted(
                document["background_units"],
                f"{place}.background_units",
                minimum=1,
                maximum=_MAX_UNITS,
            ),
            seed=counted(document["seed"], f"{place}.seed", maximum=_MAX_SEED),
            claim=AuditClaim.from_dict(document["claim"], f"{place}.claim"),
            canaries=canaries,
            included=counted(document["included"], f"{place}.included", maximum=canaries),
            views=views,
            controls=several(
                AuditControl.from_dict, document["controls"], controls, maximum=_MAX_CONTROLS
            ),
        )

    def problems(self, certificate: Certificate, model: str) -> list[str]:
        """List what does not fit the run, and figures that its own guesses do not bear out."""
        problems = []
        if (self.claim.epsilon, self.claim.delta) != (certificate.epsilon, certificate.delta):
            problems.append("it is about another claim than the certificate's epsilon and delta")
        if self.model != model:
            problems.append("it is about another model")
        for view in self.views:
            wrong = view.problems(
                self.canaries, self.included, certificate.epsilon, self.claim.delta
            )
            problems += [f"view {view.view}: {problem}" for problem in wrong]
        return problems


def _plain(value: Any) -> Any:
    """Turn tuples into the lists of JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
