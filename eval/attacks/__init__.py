"""Attacks on synthetic tables and on trainings, with their controls.

- `attribute_inference`: does the table tell what somebody who knows a person does not know yet?
- `audit`: all attacks on one set of tables and on one training, with their controls and powers
- `canaries`: epsilon bounded from below, held against the claim
- `controls`: leaks that an audit must find, and tables that leak nothing
- `linkability`: can two holders of parts of a record find each other through the synthetic table?
- `membership`: membership inference from a synthetic table: was this patient among those it was
  made from?
- `memorization`: memorisation: are people in the data repeated, or approached, more than
  others?
- `registry`: the attacks on synthetic tables, in the order in which audits make them
- `shadow_models`: what tables of generators trained with and without somebody say about him
- `sight`: what each attack of an audit could have seen, and what to change where it could not
- `singling_out`: can the synthetic table tell how to isolate one person in the data?
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
