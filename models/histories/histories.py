"""Coded histories: what a generator learns from, and what it emits.

They are those of `dpsynth.encoding`, which reads them from tables.
"""

from dpsynth.encoding import NEVER as NEVER
from dpsynth.encoding import Histories as Histories
from dpsynth.encoding import SeriesRows as SeriesRows
