"""A run directory read back: metrics, error budget, repeats, comparison, external measurement."""

from simbridge.evaluation.evaluation import Evaluation

__all__ = ["Evaluation"]
