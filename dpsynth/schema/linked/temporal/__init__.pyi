from .checks import temporal_problems as temporal_problems
from .patient_rows import PatientRows as PatientRows
from .rule import TemporalRule as TemporalRule
from .terms import Term as Term
