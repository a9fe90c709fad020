"""Conversions between units that extracts of hospitals mix up.

Factors of laboratory values follow the molar masses of the substances; the others are exact or
rounded to four digits. They serve for a guess at why cells lie outside the bounds: no value is ever
converted with them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Conversion:
    """``value * factor + offset`` gives the declared unit.

    Attributes:
        factor: of the value.
        offset: added afterwards.
        example: from what to what.
        ucum: declared units to which it leads; empty for any.
    """

    factor: float
    offset: float
    example: str
    ucum: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write the formula.

        >>> str(Conversion(0.0915, 2.15, "HbA1c: mmol/mol to %"))
        'x0.0915 + 2.15'
        """
        shift = f" {'+' if self.offset > 0 else '-'} {abs(self.offset):.4g}" if self.offset else ""
        return f"x{self.factor:.4g}{shift}"


CONVERSIONS = (
    Conversion(100, 0, "metres to centimetres, or a decimal sign in the wrong place"),
    Conversion(0.01, 0, "centimetres to metres, or a lost decimal sign"),
    Conversion(10, 0, "another unit, or a decimal sign in the wrong place"),
    Conversion(0.1, 0, "another unit, or a lost decimal sign"),
    Conversion(1000, 0, "kilograms to grams, litres to millilitres"),
    Conversion(0.001, 0, "grams to kilograms, millilitres to litres"),
    Conversion(0.0113, 0, "creatinine: umol/L to mg/dL", ("mg/dL",)),
    Conversion(88.42, 0, "creatinine: mg/dL to umol/L", ("umol/L",)),
    Conversion(0.0555, 0, "glucose: mg/dL to mmol/L", ("mmol/L",)),
    Conversion(18.02, 0, "glucose: mmol/L to mg/dL", ("mg/dL",)),
    Conversion(0.0259, 0, "cholesterol: mg/dL to mmol/L", ("mmol/L",)),
    Conversion(38.67, 0, "cholesterol: mmol/L to mg/dL", ("mg/dL",)),
    Conversion(0.0585, 0, "bilirubin: umol/L to mg/dL", ("mg/dL",)),
    Conversion(17.1, 0, "bilirubin: mg/dL to umol/L", ("umol/L",)),
    Conversion(0.0915, 2.15, "HbA1c: mmol/mol to %", ("%",)),
    Conversion(10.93, -23.5, "HbA1c: % to mmol/mol", ("mmol/mol",)),
    Conversion(1.611, 0, "haemoglobin: mmol/L to g/dL", ("g/dL",)),
    Conversion(0.6206, 0, "haemoglobin: g/dL to mmol/L", ("mmol/L",)),
    Conversion(5 / 9, -32 * 5 / 9, "Fahrenheit to Celsius", ("Cel",)),
    Conversion(1.8, 32, "Celsius to Fahrenheit", ("[degF]",)),
    Conversion(0.4536, 0, "pounds to kilograms", ("kg",)),
    Conversion(2.205, 0, "kilograms to pounds", ("[lb_av]",)),
    Conversion(2.54, 0, "inches to centimetres", ("cm",)),
    Conversion(0.3937, 0, "centimetres to inches", ("[in_i]",)),
    Conversion(7.501, 0, "kPa to mmHg", ("mm[Hg]",)),
    Conversion(0.1333, 0, "mmHg to kPa", ("kPa",)),
    Conversion(1 / 365.25, 0, "days to years", ("a",)),
    Conversion(1 / 12, 0, "months to years", ("a",)),
)


def conversions_to(ucum: str | None) -> tuple[Conversion, ...]:
    """List the conversions that may lead to a unit; without one, all of them.

    >>> [str(one) for one in conversions_to("cm")][-1], len(conversions_to(None))
    ('x2.54', 28)
    """
    return tuple(one for one in CONVERSIONS if ucum is None or not one.ucum or ucum in one.ucum)
