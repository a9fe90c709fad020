"""DP-SGD with exact clipping by unit: the only way in which private rows change a network.

- `clipping_norm`: from rows that cost no privacy, within single precision
- `device`: where a network trains: the processor, or a CUDA device beside it
- `layers`: affine, masked affine, and embedding
- `opacus_engine`: DP-SGD of any torch network: per-row gradients by Opacus, all the rest as the
  exact engine does
- `optimizer`: DP-SGD with exact clipping by unit: the only way in which private rows change a
  network
- `parameter_buffer`: a network's parameters as one flat buffer, and the optimizer that moves it
- `ranks`: processes that train one network together: what they tell each other, and nothing else
- `trainer`: the trainer of a plan: who draws units and takes the steps with them
- `unit_gradients`: their exact norms and their weighted sum, without forming any of them
- `units`: private units as the batches of a network's steps
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
