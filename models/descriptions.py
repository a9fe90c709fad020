"""What each generator is, in a line for pages and cards."""

from __future__ import annotations

MODELS = {
    "independent": "noisy counts of each column on its own",
    "mixture": "a mixture fitted to noisy counts of columns and pairs of columns",
    "autoregressive": "noisy counts, then a network trained with noise (autoregressive)",
    "tvae": "noisy counts, then a network trained with noise (variational autoencoder)",
    "ctgan": "noisy counts, then a network trained with noise (adversarial)",
}
