"""What the documents of a bundle say together: all that its derived files are made from."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.bundle.format.audits import Audits
from dpsynth.bundle.format.manifest import ManifestHeader
from dpsynth.bundle.format.precision import Precision
from dpsynth.bundle.format.quality import Quality
from dpsynth.certificate import Certificate


@dataclass(frozen=True)
class Contents:
    """The documents of a bundle.

    Attributes:
        heading: of its manifest, with the schema.
        certificate: what the fit guarantees, and which gates were overridden.
        quality: figures that the plan paid for, if any.
        audits: attacks on the training, on synthetic rows, if any.
        precision: how precisely columns, groups and pairs were measured, if the run says so.
    """

    heading: ManifestHeader
    certificate: Certificate
    quality: Quality | None = None
    audits: Audits | None = None
    precision: Precision | None = None
