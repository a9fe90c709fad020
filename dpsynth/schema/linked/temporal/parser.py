"""From the text of a temporal rule to its tree, whose operands are terms.

The language is that of the rules of a row (`dpsynth.schema.rule_parser`), with another operand::

    operand  = term | value
    term     = table "." column
             | ("first" | "last" | "each" | "next") "(" table [ "," name ] ")" "." column
             | "count" "(" table [ "," name ] ")"
             | "event" "(" [ table "," ] name ")"
    table    = name
    column   = name
    name     = word | `any characters` | 'text' | "text"

A name in brackets after the table is a test of a long table, or an event.
"""

from __future__ import annotations

from dpsynth._util.messages import did_you_mean, shown
from dpsynth.schema.linked.temporal.terms import COUNT, EVENT, FUNCTIONS, PATIENT, Term
from dpsynth.schema.rule_parser import DOTTED, Literal, Name, Parser, Token, Tree, mistake_at

_NAMES = ("word", "quoted")
_TEXTS = ("single", "double")


def parse_terms(text: str) -> tuple[Tree, dict[str, Term]]:
    """Parse a rule.

    Returns:
        Its tree, in which a term is a `Name` with the term's text, and these terms by their text.

    Raises:
        InputError: it is not a rule; says at which character and why.
    """
    parser = _TermParser(text)
    return parser.whole(), parser.terms


class _TermParser(Parser):
    """Reads terms in the place of columns, and keeps them."""

    pattern = DOTTED

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.terms: dict[str, Term] = {}

    def operand(self) -> Name | Literal:
        read = super().operand()
        if isinstance(read, Literal):
            return read
        token = self.tokens[self.index - 1]
        if self.took("dot", "."):
            return self.kept(Term(PATIENT, token.text, column=self.name("a column")))
        if token.kind == "word" and self.took("bracket", "("):
            return self.kept(self.function(token))
        raise mistake_at(
            self.text,
            token.place,
            f"{shown(token.text)} needs its table: write patients.{token.text} for the table of "
            f"patients, and first(visits).{token.text} for another; a value of text is written in "
            "quotes",
        )

    def kept(self, term: Term) -> Name:
        """Keep a term, and return it as the name of its values."""
        self.terms[term.text] = term
        return Name(term.text)

    def function(self, word: Token) -> Term:
        """Read a function after its opening bracket."""
        if word.text not in FUNCTIONS:
            meant = did_you_mean(word.text, FUNCTIONS)
            known = ", ".join(FUNCTIONS)
            reason = f"there is no function {shown(word.text)}{meant}; functions: {known}"
            raise mistake_at(self.text, word.place, reason)
        names = [self.name("the name of a table" if word.text != EVENT else "an event")]
        if self.took("comma", ","):
            names.append(self.name("a test or an event"))
        if not self.took("bracket", ")"):
            raise self.mistake("a closing bracket is missing")
        if word.text == EVENT:
            return Term(EVENT, names[0] if len(names) > 1 else None, names[-1])
        named = names[1] if len(names) > 1 else None
        if word.text == COUNT:
            return Term(COUNT, names[0], named)
        if not self.took("dot", "."):
            raise self.mistake(f"a column is expected, such as {word.text}({names[0]}).date")
        return Term(word.text, names[0], named, self.name("a column"))

    def name(self, what: str) -> str:
        """Read a name."""
        if self.next.kind not in (*_NAMES, *_TEXTS):
            raise self.mistake(f"{what} is expected")
        return self.take().text
