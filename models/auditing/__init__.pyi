from .leaky import Overfitted as Overfitted
from .leaky import Tight as Tight
from .leaky import UnclippedTranscript as UnclippedTranscript
from .likelihood import log_likelihood as log_likelihood
from .transcript import Transcript as Transcript
