from .autoregressive import Autoregressive as Autoregressive
from .ctgan import Ctgan as Ctgan
from .independent import Independent as Independent
from .mixture import Mixture as Mixture
from .training import assist as assist
from .tvae import Tvae as Tvae
