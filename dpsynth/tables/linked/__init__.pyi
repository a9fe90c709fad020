from .opening import linked_files as linked_files
from .opening import open_linked as open_linked
from .opening import open_synthetic_linked as open_synthetic_linked
from .opening import written_schema as written_schema
from .splitting import leave_out_linked as leave_out_linked
from .splitting import split_frames as split_frames
from .splitting import split_linked as split_linked
from .writing import write_linked as write_linked
