from .event import CodeDiscovery as CodeDiscovery
from .key_counts import key_counts as key_counts
from .key_event import KeyCounts as KeyCounts
from .outlook import Expected as Expected
from .outlook import Outlook as Outlook
from .selection import Occurrences as Occurrences
from .selection import Selected as Selected
from .selection import select_codes as select_codes
