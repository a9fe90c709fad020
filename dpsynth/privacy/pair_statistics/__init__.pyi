from .distances import departures as departures
from .distances import exact_departures as exact_departures
from .products import contrast_products as contrast_products
from .products import exact_contrast_products as exact_contrast_products
from .products import places_of_products as places_of_products
from .products import products_of_units as products_of_units
