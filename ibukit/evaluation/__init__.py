"""Evaluation: an estimate beside the truth."""

from ibukit.evaluation.losses import emd as emd
from ibukit.evaluation.losses import squared_l2 as squared_l2
from ibukit.evaluation.losses import total_variation as total_variation
from ibukit.evaluation.replicate import replicate as replicate
