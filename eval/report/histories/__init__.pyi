from .page import longitudinal_page as longitudinal_page
from .page import longitudinal_sections as longitudinal_sections
