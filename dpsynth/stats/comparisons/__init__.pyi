from .competing import Competing as Competing
from .differences import Differences as Differences
from .independence import Independence as Independence
from .survival import Survival as Survival
