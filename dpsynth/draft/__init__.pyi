from .clinical import find as find
from .clinical import variables as variables
from .clinical_edits import ProposedRule as ProposedRule
from .clinical_edits import clinical_rules as clinical_rules
from .drafts import Draft as Draft
from .drafts import draft_schema as draft_schema
from .package import draft_any as draft_any
from .yaml_text import flow as flow
