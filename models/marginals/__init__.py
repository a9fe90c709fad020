"""Noisy counts, and the distributions that are fitted to them.

- `adaptive_cells`: one-way distributions on the finest cells that the noise lets one tell apart
- `bin_scores`: how the scores of ordered columns go together, read off a mixture over their bins
- `binning`: the binned columns of a fit: from a cohort's codes to bins, and from drawn bins back
  to codes
- `contrasts/`: few patients: one number for each pair of columns first, then the tables that are
  worth it
- `even_draws`: draws of a column that are spread over the rows more evenly than chance
- `exact_counts`: counts and gradient steps without privacy, for `NotPrivate` fits only
- `grains`: the event of the grains: how many rows of each numeric column are whole, half, tenth,
- `heaps`: where the tree of a wide column's counts is cut: heaps stand apart, what is smooth stays
  smooth
- `histograms`: noisy one-way histograms, and what follows from them for free: distributions and
  bins
- `initial_model`: what the histograms alone give: bins, and a mixture of products that was fitted
  to them
- `log_probability`: how likely released counts make a row, in logs: of a mixture, and of codes
  within their bins
- `measured_pairs`: which pairs were measured, and how far each stands above its noise
- `measurement`: what is measured before anything is fitted: noisy one-way histograms, then noisy
  pairs of bins
- `pairs`: pairs of columns: which are measured, with what noise each, and which turn out to be
  related
- `product_fit`: rounds of Adam steps, until a mixture of products is as close to the counts as
  noise allows
- `product_mixture`: a mixture of product distributions: what it is fitted to, and how it is sampled
- `projection`: noisy counts made a histogram: nothing below zero, and a given total
- `released`: what was released of columns and pairs of columns, and how far a model is from it
- `released_weights`: what released pairs say of the weights of a log-linear model: their shares,
  and a normal prior
- `tails`: of an ordered column: cells that noise hides one by one, told by their sum and their
  slope
- `within_bins`: codes within a bin follow the other columns of the row, as far as the bins show
  that they do
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
