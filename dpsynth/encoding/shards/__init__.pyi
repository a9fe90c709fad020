from .reading import is_large as is_large
from .reading import read_shards as read_shards
from .sharded_rows import ShardedRows as ShardedRows
from .stored_rows import StoredRows as StoredRows
