"""Parts of the long tests: whole files, the same in every run; together they are all of them."""

from __future__ import annotations

import re
import zlib

PART = "DPSYNTH_LONG_PART"
"""Environment variable that names the part of the long tests that runs: "2/3"; unset for all."""


def in_part(file: str, part: str) -> bool:
    """Tell whether a file, by its path from the folder of tests, is in a part such as "2/3"."""
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", part)
    if found is None or int(found[1]) > int(found[2]):
        raise ValueError(f"{PART} names a part of the long tests, such as 2/3, not {part!r}")
    return zlib.crc32(file.encode()) % int(found[2]) == int(found[1]) - 1
