"""Lines of the record of the quality benchmark, made up."""

from __future__ import annotations

from typing import Any


def fit(table: str, model: str, epsilon: float, seed: int, **scores: float) -> dict[str, Any]:
    measures = {"tvd1": 0.001, "tvd2": 0.004, "tvd3": 0.01, "tstr_hgb": 0.79, "c2st_auc": 0.53}
    measures |= {"trtr_hgb": 0.8, "fit_s": 5.0, "sample_s": 1.0} | scores
    return {"key": [table, "row", model, epsilon, 1e-5, seed], "commit": "abc", **measures}
