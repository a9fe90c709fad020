"""The generators, one in each file beside its networks.

- `ctgan`: a conditional generative adversarial network, whose critic is trained by DP-SGD
- `ctgan_critic`: it scores whether a row, under a condition, is real or generated
- `ctgan_distance`: how far generated rows lie from noisy columns and pairs: it holds against a
  noisy critic
- `ctgan_network`: what it adds to a mixture of products, under a condition
- `ctgan_trainer`: it sees a critic and released counts, never a real row
- `independent`: every column on its own, from joint noisy one-way histograms
- `mixture`: a mixture of product distributions, fitted to noisy one- and two-way histograms
- `tvae`: a tabular variational autoencoder with an autoregressive skip, trained by DP-SGD
- `tvae_network`: a variational autoencoder whose decoder sees the columns before its own
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
