"""The attacks on synthetic tables, in the order in which audits make them.

To add one, write its file with a record ``ATTACK`` and add it here. Audits, controls and reports
loop over this table.
"""

from __future__ import annotations

from dpsynth.eval.attack_stats import TableAttack
from dpsynth.eval.attacks.attribute_inference import ATTACK as ATTRIBUTE
from dpsynth.eval.attacks.linkability import ATTACK as LINKABILITY
from dpsynth.eval.attacks.membership import ATTACK as MEMBERSHIP
from dpsynth.eval.attacks.memorization import ATTACK as MEMORIZATION
from dpsynth.eval.attacks.singling_out import ATTACK as SINGLING_OUT

ATTACKS: tuple[TableAttack, ...] = (
    MEMORIZATION,
    MEMBERSHIP,
    ATTRIBUTE,
    LINKABILITY,
    SINGLING_OUT,
)
