"""The internal report: key figures, charts and sections, as one page.

- `audit_formatting`: words and tables of an audit: rates, findings, and what an attack could
  have seen
- `board`: the answer for a board: release, release with a warning, or do not release, and why
- `charts`: pictures of a report as specs of plotly: plain data, drawn by the page when it comes
  into view
- `formatting`: figures of an evaluation in words: how many digits, which references, which signs
- `histories`: pages on histories of patients, for the office or for anybody
- `history_facts`: facts of histories in words: where synthetic patients differ most, and what may
  help
- `key_figures`: the first look at an evaluation: which measures lead, and what the internal gates
  say
- `page`: the internal report of an evaluation and its audit, and several evaluations side by
  side
- `rendering`: what a section of a report is made of, in reading order, and how pages are
  rendered
- `sections/`: the sections of the internal report, one in each file
- `sparklines`: small pictures within a line of text or a table: marks on a scale, drawn without a
  script
- `uses`: what a table is fit for, by thresholds that the guide gives (docs/evaluation.md)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
