from .impact_assessment import dpia_paragraph as dpia_paragraph
from .report import public_page as public_page
