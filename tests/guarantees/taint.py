"""The search for canaries: in every layer of every file, in its name, and in what was said."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .representations import Canaries
from .unpacking import arrays, layers

KEY = 4  # bytes of a form that are compared first, at every place at once
OFTEN = 100  # places at which a part is, from which on one search for the whole is quicker


@dataclass(frozen=True, order=True)
class Finding:
    """A canary, in which form, and where."""

    canary: str
    form: str
    place: str
    strong: bool


@dataclass
class Search:
    """Canaries to look for, what was found, and how much was looked at.

    Attributes:
        canaries: what to look for.
        found: the findings so far.
        files: number of files (and of things said) so far.
        size: bytes so far, unpacked layers included.
    """

    canaries: Canaries
    found: set[Finding] = field(default_factory=set)
    files: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self._by_key = _by_key(tuple(self.canaries.forms))
        self._step = {
            form: 4 if not strong and ("int" in kind or "packed" in kind) else 1
            for form, (_, kind, strong) in self.canaries.forms.items()
        }
        self._keys = np.array(sorted(self._by_key), dtype=np.uint32)
        self._begins = np.zeros(2**16, dtype=bool)
        self._begins[self._keys & 0xFFFF] = True
        self._numbers = np.array(sorted(self.canaries.numbers))

    def folder(self, folder: Path, *, besides: Iterable[Path] = ()) -> Search:
        """Look through every file below a folder, and their names, save for some."""
        left_out = {path.resolve() for path in besides}
        for path in sorted(folder.rglob("*")):
            if path.resolve() in left_out:
                continue
            place = path.relative_to(folder).as_posix()
            self.content(f"name of {place}", place.replace("/", "\n").encode())
            if path.is_symlink() or not path.is_file():
                continue
            content = path.read_bytes()
            self.content(place, content)
            lines = content.count(b"\n")
            self.content(f"size of {place}", f"{len(content)} bytes, {lines} lines".encode())
        return self

    def content(self, place: str, content: bytes) -> None:
        """Look through bytes, and all that can be unpacked from them."""
        self.files += 1
        for how, layer in layers(content):
            where = f"{place} {how}".strip()
            self.size += len(layer)
            for form in self._forms_in(layer):
                name, kind, strong = self.canaries.forms[form]
                self.found.add(Finding(name, kind, where, strong))
            for label, values in arrays(layer):
                self._values(f"{where} {label}", values)

    @property
    def strong(self) -> set[Finding]:
        """Findings that chance cannot explain."""
        return {finding for finding in self.found if finding.strong}

    @property
    def weak(self) -> set[Finding]:
        """Findings that could be chance, and then would not come back."""
        return self.found - self.strong

    def _forms_in(self, content: bytes) -> set[bytes]:
        """Forms that occur; places where no key is are left out at once.

        Weak packed numbers count where arrays have them, at multiples of four bytes in a layer:
        elsewhere they are met by zeros beside a mantissa or an exponent.
        """
        if len(content) < KEY or not len(self._keys):
            return set()
        raw = np.frombuffer(content, dtype=np.uint8).astype(np.uint32)
        low = raw[:-3] | raw[1:-2] << 8
        places = np.flatnonzero(self._begins[low])
        keys = low[places] | raw[places + 2] << 16 | raw[places + 3] << 24
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = self._keys[at] == keys
        places, keys = places[known], keys[known]
        return {
            form
            for key in np.unique(keys).tolist()
            for form, offset in self._by_key[key]
            if self._is_in(content, form, places[keys == key] - offset)
        }

    def _is_in(self, content: bytes, form: bytes, starts: npt.NDArray[np.int64]) -> bool:
        """Whether a form begins at one of these places, where a part of it is."""
        step = self._step[form]
        if step == 1 and len(starts) > OFTEN:
            return form in content
        starts = starts[(starts >= 0) & (starts % step == 0)]
        return any(content.startswith(form, start) for start in starts.tolist())

    def _values(self, place: str, values: npt.NDArray[np.generic]) -> None:
        """Compare numbers by value, as precisely as float32 holds them."""
        if values.dtype.kind not in "iuf" or not values.size:
            return
        with np.errstate(over="ignore"):
            flat = values.reshape(-1).astype(np.float32)
        for position in np.flatnonzero(np.isin(self._numbers.astype(np.float32), flat)):
            name = self.canaries.numbers[float(self._numbers[position])]
            self.found.add(Finding(name, "value", place, strong=False))


@functools.lru_cache(maxsize=8)  # offices search for the same canaries again and again
def _by_key(forms: tuple[bytes, ...]) -> dict[int, list[tuple[bytes, int]]]:
    """Forms by the bytes that are compared first, with the place of these bytes in the form."""
    keyed: dict[int, list[tuple[bytes, int]]] = {}
    for form in forms:
        offset = _telling_part(form)
        keyed.setdefault(int.from_bytes(form[offset : offset + KEY], "little"), []).append(
            (form, offset)
        )
    return keyed


def _telling_part(form: bytes) -> int:
    """Where the bytes of a form begin that are rarest: neither zeros nor ones."""
    padding = [byte in (0, 255) for byte in form]
    return min(range(len(form) - KEY + 1), key=lambda start: sum(padding[start : start + KEY]))
