from .row_check import RowCheck as RowCheck
from .row_facts import RowFacts as RowFacts
from .row_facts import UnitShares as UnitShares
