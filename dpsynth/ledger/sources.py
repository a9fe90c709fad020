"""Sources that a ledger has seen: whether the same data were read under another name."""

from __future__ import annotations

import hashlib
import hmac
import warnings

import pandas as pd

from dpsynth.errors import DpsynthError, DpsynthWarning
from dpsynth.ledger.ledger import Entry, Ledger
from dpsynth.tables import Reference, Source, as_source


def compare_source(ledger: Ledger, entry: Entry, source: Source) -> str | None:
    """Return the keyed digest of a source, and warn where it was read under another name.

    Who is in it has one budget. The file's bytes (or a frame's cells; of a database, its URL
    without credentials and the table's name or the query's text) enter an HMAC under the ledger's
    own key, which nobody without that key can compare with a file. It is private reading, so it
    comes after the charge, and it stays in the ledger, beside the chain: no seal depends on it.

    Warns:
        DpsynthWarning: the names, and what to do.
    """
    digest = source_digest(source, ledger.key)
    if digest is None:
        return None
    try:
        others = ledger.saw(entry.id, digest)
    except DpsynthError:
        return digest  # only a hint; a fit that has begun does not stop for it
    if others:
        names = ", ".join(f"'{name}'" for name in others)
        warnings.warn(
            f"the same data were fitted as dataset {names} before, and now as '{entry.dataset}': "
            "they hold the same people, so what both have spent adds up. Name both in one group of "
            "the policy's datasets",
            DpsynthWarning,
            stacklevel=4,
        )
    return digest


def source_digest(source: Source, key: bytes) -> str | None:
    """Return the HMAC-SHA-256 of a source; None for a frame of cells that cannot be hashed."""
    total = hmac.new(key, digestmod=hashlib.sha256)
    source = as_source(source)
    if isinstance(source, pd.DataFrame):
        try:
            cells = pd.util.hash_pandas_object(source, index=False)
        except Exception:  # of any column, of the schema or not; some of these quote the cell
            return None
        total.update(repr([str(name) for name in source.columns]).encode(errors="replace"))
        total.update(cells.to_numpy().tobytes())
        return total.hexdigest()
    for block in Reference.of(source).content():
        total.update(block)
    return total.hexdigest()
