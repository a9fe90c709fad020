from .estimating import Estimates as Estimates
from .estimating import estimate as estimate
from .perturbing import perturb as perturb
from .randomiser import Randomiser as Randomiser
from .reports import Reports as Reports
