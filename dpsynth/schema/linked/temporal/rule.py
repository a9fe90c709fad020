"""One temporal rule, and for which patients it holds.

**Sensitivity.** Whether a rule holds for a patient is a function of her own rows. The sampler uses
it on drawn patients only, so it is post-processing of what mechanisms released (Dwork and Roth, The
Algorithmic Foundations of Differential Privacy, 2014, Proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth.schema.linked.temporal.parser import parse_terms
from dpsynth.schema.linked.temporal.patient_rows import PatientRows
from dpsynth.schema.linked.temporal.terms import Tables, Term
from dpsynth.schema.rules import Rule

if TYPE_CHECKING:
    import pandas as pd

Truth = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TemporalRule:
    """What must hold between the rows of one patient.

    A rule with ``each`` or ``next`` holds for a patient if it holds for each of her rows of that
    table; so it holds for a patient without such rows. What a missing value leaves undecided counts
    as holding, as in a `Rule` of one row.

    Attributes:
        text: as it is written.
        rule: the same comparisons, of columns that are called as the terms are.
        terms: what it compares, by their text.

    >>> rule = TemporalRule.parse("each(visits).date >= patients.admitted")
    >>> [(term.function, term.table, term.column) for term in rule.terms.values()]
    [('each', 'visits', 'date'), ('patient', 'patients', 'admitted')]
    """

    text: str
    rule: Rule = field(compare=False, repr=False)
    terms: Mapping[str, Term] = field(compare=False, repr=False, hash=False)

    @classmethod
    def parse(cls, text: str) -> TemporalRule:
        """Read a rule; nothing in it is evaluated.

        Raises:
            InputError: it is not a rule; says at which character and why.
        """
        tree, terms = parse_terms(text)
        return cls(text.strip(), Rule(text.strip(), tree), terms)

    def holds(
        self,
        tables: Mapping[str, pd.DataFrame],
        schema: Tables,
        *,
        missing: bool = True,
    ) -> Truth:
        """Tell for each patient whether the rule holds.

        Args:
            tables: decoded cells by the name of their table: numbers, strings, dates, as the
                sampler writes them, with the column of the key and those of time and order. Rows
                of a key that no patient has, and rows without a time, take no part.
            schema: of the tables.
            missing: the answer where missing values leave it undecided.

        Returns:
            One truth value for each row of the table of patients, ``[patients]``.

        Raises:
            InputError: a column is absent, two operands cannot be compared, or two rows of the
                table of patients have one key.
        """
        return self.holds_in(PatientRows(tables, schema), missing=missing)

    def holds_in(self, rows: PatientRows, *, missing: bool = True) -> Truth:
        """Tell the same of tables that several rules look at; they are put in order once."""
        ranged = next((term for term in self.terms.values() if term.ranges), None)
        if ranged is None:
            return self.rule.holds(rows.by_patient(self.terms.values()), missing=missing)
        cases, owners = rows.by_row(self.terms.values(), ranged)
        broken = ~self.rule.holds(cases, missing=missing)
        return np.asarray(np.bincount(owners[broken], minlength=len(rows)) == 0)
