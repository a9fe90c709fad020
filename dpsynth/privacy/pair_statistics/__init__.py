"""Numbers about all pairs of columns at once, each of which costs the noise of one count.

A table of counts costs the noise of every cell. Here each pair is asked for one number, so that
many pairs can be asked with little noise each. Both mechanisms add up whole numbers exactly and add
discrete Gaussian noise, so each is an answer of `privacy.events.ChosenHistograms`, whose bound
only uses that a unit shifts the answers by whole numbers of bounded L2 norm.

- `products`: how each pair of columns is related, by products of the columns' scores
- `distances`: how far each pair of columns is from what is expected of it
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
