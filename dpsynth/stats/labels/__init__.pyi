from .document import Labels as Labels
from .labelling import labels as labels
from .labelling import prepared as prepared
from .outlook import Outlook as Outlook
from .outlook import outlook as outlook
from .outlook import what_if as what_if
from .queries import Queries as Queries
from .task import Task as Task
