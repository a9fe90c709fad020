"""Where finished shadow fits are kept: a folder for its owner only, a place for each setting.

Internal: features are about real people; see `dpsynth.assessment.shadow_models`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpsynth._util.strict_json import read_document, written
from dpsynth.assessment.shadow_design import FittedShadow, ShadowDesign
from dpsynth.errors import ArtifactError, InputError
from dpsynth.eval.attacks import Shadow
from dpsynth.files import check_apart, reason, write_atomically

FORMAT, VERSION = "dpsynth-shadow", 1
_NAME = "fit-{:03d}.json"


@dataclass(frozen=True)
class ShadowFolder:
    """Finished fits of one setting.

    Attributes:
        place: the setting's own folder.
        settings: their digest.
        shape: of the features: targets, and what is seen of each.
    """

    place: Path
    settings: str
    shape: tuple[int, int]

    @classmethod
    def of(cls, folder: str | Path, design: ShadowDesign) -> ShadowFolder:
        """Make the place of a setting, if it is not there.

        Raises:
            InputError: it cannot be made, or lies in a run or a bundle.
        """
        place = Path(folder) / design.name[:16]
        check_apart(place)
        try:
            for path in (Path(folder), place):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.chmod(0o700)
        except OSError as error:
            raise InputError(
                f"the folder {place} for shadow models cannot be made: {reason(error)}"
            ) from None
        cache = cls(place, design.name, (len(design.exposed.units), design.sight.width))
        cache._write("settings.json", written({"internal": True, **design.settings}))
        return cache

    def read(self) -> dict[int, FittedShadow]:
        """Return what is there, by number; a damaged or foreign file counts as none."""
        fits = {}
        for path in sorted(self.place.glob("fit-*.json")):
            fit = self._one(path)
            if fit is not None and path.name == _NAME.format(fit.shadow.number):
                fits[fit.shadow.number] = fit
        return fits

    def write(self, fit: FittedShadow) -> None:
        """Keep a fit."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "internal": True,
            "settings": self.settings,
            "number": fit.shadow.number,
            "included": fit.shadow.included.tolist(),
            "features": fit.shadow.features.tolist(),
            "seconds": fit.seconds,
        }
        self._write(_NAME.format(fit.shadow.number), written(document))

    def _write(self, name: str, content: bytes) -> None:
        write_atomically(self.place / name, content, private=True)

    def _one(self, path: Path) -> FittedShadow | None:
        try:
            document = read_document(path)
            if (document["format"], document["settings"]) != (FORMAT, self.settings):
                return None
            included = np.array(document["included"], dtype=bool)
            features = np.array(document["features"], dtype=float)
            if features.shape != self.shape or len(included) != len(features):
                return None
            if not np.isfinite(features).all():
                return None
            shadow = Shadow(int(document["number"]), included, features)
            return FittedShadow(shadow, float(document["seconds"]))
        except (ArtifactError, KeyError, TypeError, ValueError):
            return None
