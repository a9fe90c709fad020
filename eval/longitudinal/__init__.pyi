from .evaluation import HistoryEvaluation as HistoryEvaluation
from .evaluation import evaluate_histories as evaluate_histories
from .pictures import synthetic_pictures as synthetic_pictures
from .timing import count_labels as count_labels
from .timing import gap_labels as gap_labels
from .uses import HistoryUse as HistoryUse
from .uses import summary as summary
