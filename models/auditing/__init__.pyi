from .leaky import Overfitted as Overfitted
from .leaky import Tight as Tight
from .leaky import UnclippedWitness as UnclippedWitness
from .likelihood import log_likelihood as log_likelihood
from .transcript import Witness as Witness
