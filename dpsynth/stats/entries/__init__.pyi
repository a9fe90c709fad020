from .checks import check_keys as check_keys
from .checks import table_schema as table_schema
from .reader import KINDS as KINDS
from .reader import Reader as Reader
