from .domain import FollowUp as FollowUp
from .domain import HistoryDomain as HistoryDomain
from .domain import HistoryTable as HistoryTable
from .domain import Series as Series
from .domain import drawn_as_changes as drawn_as_changes
from .generator import CohortGenerator as CohortGenerator
from .linked_domain import domain_of as domain_of
