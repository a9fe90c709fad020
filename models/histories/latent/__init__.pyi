from .generator import TESTS as TESTS
from .generator import LatentHistories as LatentHistories
from .generator import shares_of_latent as shares_of_latent
from .patients import PatientTable as PatientTable
from .patients import is_number as is_number
from .vector import EVERS as EVERS
from .vector import FEW_CODES as FEW_CODES
from .vector import ONE_WAY as ONE_WAY
