from .opening import linked_files as linked_files
from .opening import open_linked as open_linked
from .opening import open_synthetic_linked as open_synthetic_linked
from .opening import written_schema as written_schema
from .simulated import simulate_cohort as simulate_cohort
from .writing import write_linked as write_linked
