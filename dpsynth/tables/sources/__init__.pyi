from .opening import dialect_of as dialect_of
from .opening import open_reference as open_reference
from .reference import FILES as FILES
from .reference import Reference as Reference
from .reference import is_url as is_url
from .reference import names_table as names_table
from .reference import with_query as with_query
