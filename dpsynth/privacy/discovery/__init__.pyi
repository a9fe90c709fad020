from .event import CodeDiscovery as CodeDiscovery
from .outlook import Expected as Expected
from .outlook import Outlook as Outlook
from .selection import Occurrences as Occurrences
from .selection import Selected as Selected
from .selection import select_codes as select_codes
