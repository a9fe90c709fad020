from .cells import Stored as Stored
from .opening import WarehouseTable as WarehouseTable
from .opening import warehouse_table as warehouse_table
from .sessions import Session as Session
