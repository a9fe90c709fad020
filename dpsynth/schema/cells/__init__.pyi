from .form_reader import read_forms as read_forms
from .form_writer import write_forms as write_forms
from .status import read_status as read_status
from .status import status_column as status_column
