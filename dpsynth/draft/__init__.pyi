from .clinical import find as find
from .clinical import variables as variables
from .drafts import Draft as Draft
from .drafts import draft_schema as draft_schema
from .package import draft_any as draft_any
from .yaml_text import flow as flow
