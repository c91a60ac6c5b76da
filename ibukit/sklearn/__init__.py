"""Estimates as scikit-learn makes them: `fit`, `score`, grid searches, splits of reports."""

from ibukit.sklearn.maximum_likelihood import MLE as MLE
