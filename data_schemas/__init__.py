"""Public schemas of real tables and of the demo cohort, one ``NAME.schema.yaml`` each.

Every bound and category comes from the documentation of the table, from the range of a device or
from a stated choice; none was read from the rows. ``dpsynth.Schema.load("cardio")`` finds them.
Schemas of linked tables are ``NAME.package.yaml``; ``dpsynth.schema.LinkedSchema`` loads them.
"""
