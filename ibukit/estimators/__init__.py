"""Estimators: from a tally to an estimate."""

from ibukit.estimators.certificate import gap as gap
from ibukit.estimators.combine import combine_mechanisms as combine_mechanisms
from ibukit.estimators.combine import combine_results as combine_results
from ibukit.estimators.compare import Comparison as Comparison
from ibukit.estimators.compare import Contrast as Contrast
from ibukit.estimators.compare import compare as compare
from ibukit.estimators.em_smoothing import ems as ems
from ibukit.estimators.inversion import inv as inv
from ibukit.estimators.iterative_update import gibu as gibu
from ibukit.estimators.iterative_update import ibu as ibu
from ibukit.estimators.maximum_likelihood import mle as mle
from ibukit.estimators.posterior_mean import posterior_mean as posterior_mean
from ibukit.estimators.regression.regress import regress as regress
from ibukit.estimators.regression.regression import Regression as Regression
from ibukit.estimators.smoothing import choose_penalty as choose_penalty
from ibukit.estimators.smoothing import smooth as smooth
from ibukit.estimators.stopping import Change as Change
from ibukit.estimators.stopping import Discrepancy as Discrepancy
from ibukit.estimators.stopping import Gap as Gap
from ibukit.estimators.stopping import Steps as Steps
from ibukit.estimators.stopping import StoppingRule as StoppingRule
from ibukit.estimators.unfolding.unfold import unfold as unfold
from ibukit.estimators.unfolding.unfolded import Unfolded as Unfolded
