from .descent import fit_products as fit_products
from .distance import Distance as Distance
from .distance import Information as Information
