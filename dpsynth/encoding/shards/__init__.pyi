from .sharded_rows import ShardedRows as ShardedRows
from .sharded_rows import is_large as is_large
from .sharded_rows import read_shards as read_shards
from .stored_rows import StoredRows as StoredRows
