from .autoregressive import AutoregressiveHistories as AutoregressiveHistories
from .choice import LATENT as LATENT
from .choice import choose_linked as choose_linked
from .choice import shares_of_linked as shares_of_linked
from .training import trained_tables as trained_tables
