"""Evaluation: fidelity, usefulness and attacks. A sibling of the models, which it never imports."""
