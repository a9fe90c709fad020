"""The schema of a part of a table: the same columns, and public sizes of the part.

Where a share of the units is held out, a fit sees the rest. How many that are is a public number
times a public share, so that nothing is counted.
"""

from __future__ import annotations

from dataclasses import replace

from dpsynth.schema.column import Declared
from dpsynth.schema.linked import AnySchema, LinkedSchema
from dpsynth.schema.schema import Schema


def without_share(schema: AnySchema, held_out: float) -> AnySchema:
    """Return the schema of what is left when a share of the units is held out.

    Population and rows are scaled, to two significant digits, and their bases say so.

    >>> demo = Schema.load("demo")
    >>> without_share(demo, 0.2).population.value
    16000
    >>> without_share(demo, 0.0) is demo
    True
    """
    if not held_out:
        return schema
    if isinstance(schema, LinkedSchema):
        population = _scaled(schema.population, held_out)

        def sized(own: Schema) -> Schema:
            return replace(own, population=population, rows=population)

        children = tuple(replace(one, schema=sized(one.schema)) for one in schema.children)
        return replace(schema, patients=sized(schema.patients), children=children)
    return replace(
        schema,
        population=_scaled(schema.population, held_out),
        rows=_scaled(schema.rows, held_out),
    )


def _scaled(number: Declared, held_out: float) -> Declared:
    rest = number.value * (1 - held_out)
    whole = max(1, round(rest))
    value = max(1, round(whole, 2 - len(str(whole))))
    return Declared(
        value,
        f"{1 - held_out:.2g} of {number.value} ({number.basis}); the rest is held out of the fit",
    )
