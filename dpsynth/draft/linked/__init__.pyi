from .package import draft_any as draft_any
