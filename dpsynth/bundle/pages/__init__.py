"""What people read in a bundle: the report, the card, the Croissant document, the assessment.

- `audit_cards`: audits as the public page shows them: a card each, figures rounded to the careful
  side
- `card`: what the table and its model are for, and what they are not for, for people and hubs
- `croissant`: the tables of a bundle for machine-learning tools
- `impact_assessment`: a paragraph for a data protection impact assessment, from a certificate
  alone
- `limits`: what whoever uses a synthetic table has to know of its limits, in sentences for every
  document
- `report`: the page of a bundle for those who receive it and those whose data are behind it
- `table_words`: how the synthetic tables of a bundle hang together, in sentences: keys, days,
  tests, events
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
