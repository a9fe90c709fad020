"""The version of dpsynth, for whoever writes it into a file."""

from __future__ import annotations

__version__ = "0.1.0"
