from .found_codes import as_declared as as_declared
from .found_codes import with_found as with_found
from .reader import read_discovered as read_discovered
