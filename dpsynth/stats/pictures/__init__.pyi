from .curves import curves_of as curves_of
from .panel import Curve as Curve
from .panel import panel as panel
