"""Engines: who does numbered pieces of work, and where; the answers never depend on it.

Each is imported from its own file.

- `engine`: what every engine promises, how callers check it, and the engine that is this process
- `local`: worker processes of this machine
"""
