from .emphasis import Emphasis as Emphasis
from .network import NUMBERS as NUMBERS
from .network import PersonNetwork as PersonNetwork
from .released import ReleasedPersons as ReleasedPersons
from .table import Hidden as Hidden
from .table import PersonTable as PersonTable
from .table import one_row_each as one_row_each
from .thinning import thin_tails as thin_tails
