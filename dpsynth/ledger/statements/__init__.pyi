from .balances import Account as Account
from .balances import accounts as accounts
from .balances import at_work as at_work
from .balances import explained as explained
from .export import exported as exported
