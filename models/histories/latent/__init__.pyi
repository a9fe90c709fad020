from .generator import LatentHistories as LatentHistories
from .generator import shares_of_latent as shares_of_latent
from .patients import PatientTable as PatientTable
from .patients import is_number as is_number
