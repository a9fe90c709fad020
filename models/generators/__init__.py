"""The generators, one in each file beside its networks.

- `autoregressive`: a masked autoregressive network over binned columns, trained by DP-SGD
- `autoregressive_network`: each column's distribution, given the columns before it
- `binned_network`: what the networks over binned columns share: one-hot rows, their loss, and draws
  from logits
- `conditioned`: a network under a condition: rows are proposed, weighed, and chosen
- `ctgan`: a conditional generative adversarial network, whose critic is trained by DP-SGD
- `distilled`: an autoregressive network that a mixture of noisy counts has taught
- `independent`: every column on its own, from joint noisy one-way histograms
- `latent_aim`: latent vectors that a condition wants: a normal law fitted to those that meet it
- `missing_together`: columns that are missing together, joined where released pairs say so
- `mixture`: a mixture of product distributions, fitted to noisy one- and two-way histograms
- `pair_settling`: what a network says of pairs of columns, moved until it meets what was counted
- `target_weights`: what decides a target, learned from its released pairs themselves
- `training`: training of a network: on rows of the mixture, then by private steps, which several
  processes may take together
- `tvae`: a tabular variational autoencoder, trained by DP-SGD
- `warm_started`: what `autoregressive` and `tvae` share: a network, warmed up on a mixture, trained
  by DP-SGD
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
