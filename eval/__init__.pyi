from .evaluation import Progress as Progress
from .evaluation import silent as silent
from .gates import Gate as Gate
from .gates import shipped as shipped
from .overview import Score as Score
from .quality_queries import Questionnaire as Questionnaire
from .quality_queries import figures as figures
