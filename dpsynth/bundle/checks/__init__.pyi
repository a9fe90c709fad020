from .certificate import check_certificate as check_certificate
from .files import check_description as check_description
from .files import check_signature as check_signature
from .files import found_files as found_files
from .files import read_manifest as read_manifest
from .findings import Findings as Findings
from .tables import TablePair as TablePair
