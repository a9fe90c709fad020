"""Networks that draw the steps of wide tables, taught by what was released alone.

- `calibrated`: a network of steps moved until what it draws has the released pairs
- `distilled`: a step table's mixture taught to a network
"""
