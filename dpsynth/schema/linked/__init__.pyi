from .facts import ChildTable as ChildTable
from .facts import Link as Link
from .facts import LongSeries as LongSeries
from .facts import Window as Window
from .linked_schema import LinkedSchema as LinkedSchema
from .linked_schema import shipped_packages as shipped_packages
from .temporal import PatientRows as PatientRows
from .temporal import TemporalRule as TemporalRule
