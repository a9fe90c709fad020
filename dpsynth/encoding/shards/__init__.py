"""Coded rows in shards on a disk: a table that does not fit in memory, counted by all cores.

- `arrays`: arrays in files for their owner alone, mapped into memory
- `choosing`: which rows of a unit are kept, by a key
- `dealing`: coded rows dealt to shards: all rows of a unit into one
- `reading`: a table read into shards
- `seating`: units of a shard with their rows, at most ``max_rows`` of each, laid out in files
- `sharded_rows`: rows in shards, counted shard by shard
- `stored_rows`: rows of units one after another in one file, from which batches are taken
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
