from .document import Linkage as Linkage
from .linking import linkage as linkage
from .outlook import Expectation as Expectation
from .outlook import expectation as expectation
from .outlook import what_if as what_if
from .request import LinkageRequest as LinkageRequest
