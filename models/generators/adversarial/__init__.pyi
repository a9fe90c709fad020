from .critic import FAKE as FAKE
from .critic import REAL as REAL
from .critic import Critic as Critic
from .critic import crossed as crossed
from .critic import joined as joined
from .distance import MarginalDistance as MarginalDistance
from .network import GeneratorNetwork as GeneratorNetwork
from .trainer import GeneratorTrainer as GeneratorTrainer
