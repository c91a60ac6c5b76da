"""Estimates in the manner of scikit-learn: `fit`, `score`, grid searches, splits of reports."""

from ibukit.sklearn.maximum_likelihood import MLE as MLE
