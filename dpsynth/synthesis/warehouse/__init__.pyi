from .staying_rows import staying_rows as staying_rows
