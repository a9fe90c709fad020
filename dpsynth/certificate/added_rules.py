"""Rules that people added after a fit: who declared each, on what basis, and what that covers.

A rule that is declared, from a public list or read off the generator itself is public, or follows
from what was released: keeping drawn rows to it is post-processing (Dwork and Roth 2014,
proposition 2.1). That *no real row* breaks a rule changes with one patient. A rule with such a
basis is not covered by the guarantee, whoever confirms it: certificate, card and `verify` say so,
and a release needs a policy that allows it (`allow_rules_from_rows`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from dpsynth._util.strict_json import check_keys, names, text
from dpsynth.errors import ArtifactError, InputError
from dpsynth.schema import AnySchema, LinkedSchema, Schema

DECLARED, PUBLIC_LIST, MODEL, DATA = "declared", "public list", "model", "data"
SOURCES = {
    DECLARED: "declared by the office, from documents",
    PUBLIC_LIST: "from a public list of clinical edits",
    MODEL: "read off the fitted generator",
    DATA: "read off the data",
}
MAX_RULES = 200


@dataclass(frozen=True)
class AddedRule:
    """A rule that what is drawn keeps, beside those of the schema.

    Attributes:
        rule: in the language of the schema's rules.
        source: a key of `SOURCES`.
        basis: why it holds: a document, a list, a measurement; one line.
        confirmed_by: the person who says so.

    Raises:
        InputError: the source is unknown, or a text is empty or not one line.
    """

    rule: str
    source: str
    basis: str
    confirmed_by: str

    def __post_init__(self) -> None:
        """Refuse what cannot be shown."""
        if self.source not in SOURCES:
            raise InputError(f"the source of a rule is one of {', '.join(SOURCES)}")
        for name in ("rule", "basis", "confirmed_by"):
            value = getattr(self, name)
            if not value.strip() or not value.isprintable():
                raise InputError(f"{name} of a rule is one line of text, and not empty")

    @property
    def covered(self) -> bool:
        """Whether the guarantee holds with it."""
        return self.source != DATA

    @property
    def words(self) -> str:
        """Say it in a line.

        >>> AddedRule("a < b", "declared", "protocol 4.2", "A. Meier").words
        '`a < b`, declared by the office, from documents (protocol 4.2); confirmed by A. Meier'
        """
        says = f"`{self.rule}`, {SOURCES[self.source]} ({self.basis}); confirmed by "
        return says + self.confirmed_by + ("" if self.covered else ": NOT COVERED by the guarantee")

    def to_dict(self) -> dict[str, str]:
        """Give it in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: a key is missing or unknown, or a value is none of a rule.
        """
        check_keys(document, place, names(cls))
        values = {name: text(document[name], f"{place}.{name}") for name in names(cls)}
        try:
            return cls(**values)
        except InputError as error:
            raise ArtifactError(f"{place}: {error}") from error


def with_rules(schema: AnySchema, rules: tuple[AddedRule, ...], source: str = "rules") -> Any:
    """Return a schema with further rules; of linked tables, temporal ones.

    Args:
        schema: of a run.
        rules: to add; one that the schema states already is passed over.
        source: what a mistake is said to be in.

    Raises:
        SchemaError: a rule cannot be read, names a column that is not published, or contradicts
            another one; every mistake is listed.
    """
    stated = {rule.text for rule in schema.rules}
    texts = [one.rule for one in rules if one.rule not in stated]
    if not texts:
        return schema
    document = schema.to_dict()
    own = document["dpsynth"]
    own["rules"] = [*(own.get("rules") or []), *texts]
    kind: type[Schema] | type[LinkedSchema] = type(schema)
    return kind.from_dict(document, source)
