"""Noisy counts, and the distributions that are fitted to them.

- `adaptive_cells`: one-way distributions on the finest cells that the noise lets one tell apart
- `bin_scores`: how the scores of ordered columns go together, read off a mixture over their bins
- `bin_spread`: wide bins of an ordered column, cut where one bin holds too much of the column's
  spread
- `binning`: the binned columns of a fit: from a cohort's codes to bins, and from drawn bins back
  to codes
- `code_groups`: listed codes, counted one by one and by group
- `contrasts/`: few patients: one number for each pair of columns first, then the tables that are
  worth it
- `even_draws`: draws of a column that are spread over the rows more evenly than chance
- `exact_counts`: counts and gradient steps without privacy, for `NotPrivate` fits only
- `grains/`: grains of numbers: whole, half, tenth, or heaped at round values, told by one small
  event
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
- `pairs/`: pairs of columns: which are measured, and what their counts say of single columns
- `product_fit/`: how a mixture of products is fitted to noisy counts: a distance, its slope, and
  Adam
- `product_mixture`: a mixture of product distributions: what it is fitted to, and how it is sampled
- `projection`: noisy counts made a histogram: nothing below zero, and a given total
- `released`: what was released of columns and pairs of columns, and how far a model is from it
- `released_weights`: what released pairs say of the weights of a log-linear model: their shares,
  and a normal prior
- `tails`: of an ordered column: cells that noise hides one by one, told by their sum and their
  slope
- `thresholds`: bins that a threshold of another column cuts, whose codes follow that column
- `within_bins`: codes within a bin follow the other columns of the row, as far as the bins show
  that they do
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
