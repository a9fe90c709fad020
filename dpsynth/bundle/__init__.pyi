from .dpia import dpia_of as dpia_of
from .evidence import close_entry as close_entry
from .evidence import evidence_by_folder as evidence_by_folder
from .meds_events import export_meds as export_meds
from .release_permission import ledger_of as ledger_of
from .signing import sign as sign
from .verifier import verify as verify
from .writer import release as release
