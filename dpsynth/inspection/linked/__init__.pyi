from .linked_check import LinkedCheck as LinkedCheck
from .linked_check import check_linked as check_linked
from .remedies import together as together
