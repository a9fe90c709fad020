from .checks import check_keys as check_keys
from .checks import read_any_schema as read_any_schema
from .reader import KINDS as KINDS
from .reader import Reader as Reader
