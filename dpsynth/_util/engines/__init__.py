"""Engines: who does numbered pieces of work, and where; the answers never depend on it.

Each is imported from its own file.

- `engine`: what every engine promises, how callers check it, and the engine that is this process
- `dask_engine`: workers of a Dask cluster, on as many machines as it has
- `fallback`: work that an engine failed at, done again by this process
- `local`: worker processes of this machine
- `opening`: from what a user asks for to an engine
- `shared_files`: whether other machines see the same files, and have the same programs
- `torchrun`: whether this process is one of several that ``torchrun`` started, and which
"""
