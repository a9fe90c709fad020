"""Quality figures and audits that a bundle may publish, made up."""

from __future__ import annotations

from dpsynth.bundle.format import Audits, Quality
from dpsynth.bundle.format.quality import Calibration, ColumnDistance, QualityFigure, TargetQuality

from ..support.public_audit_example import public_audit

QUALITY = Quality(
    table_sha256="a" * 64,
    rows=300,
    event="one-way histograms",
    statistics=(
        QualityFigure("tvd2", "Pairs of columns", 0.0612, 0.05, 0.07, 0.02, "how pairs differ"),
        QualityFigure("c2st", "Told apart", 0.6, 0.5, 0.7, None, "how well rows are told apart"),
    ),
    columns=(ColumnDistance("age", 0.0312, 0.01, 0.05, 0.02),),
    targets=(TargetQuality("smoker", "true", 0.71, 0.68, 0.74, (Calibration(0.1, 0.12),)),),
    note="Intervals hold with 95 %.",
)

AUDITS = Audits("c" * 64, (public_audit(), public_audit(9)))
