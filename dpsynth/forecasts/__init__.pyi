from .errors import Errors as Errors
from .page import check_folder as check_folder
from .page import error_words as error_words
from .page import forecast_page as forecast_page
from .page import source_words as source_words
from .page import wanted_sentences as wanted_sentences
from .page import write_forecast as write_forecast
