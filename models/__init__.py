"""Generators: they learn from codes under a privacy plan, and emit codes."""
