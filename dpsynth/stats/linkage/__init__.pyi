from .document import Linkage as Linkage
from .linking import linkage as linkage
from .request import Expectation as Expectation
from .request import LinkageRequest as LinkageRequest
from .request import expectation as expectation
from .request import what_if as what_if
