from .events import StepSettings as StepSettings
from .fit import fit_steps as fit_steps
from .model import StepModel as StepModel
from .rows import TableRows as TableRows
from .stack import Stack as Stack
from .table import StepTable as StepTable
