r"""The likelihood of a multinomial logit whose outcomes are seen through mechanisms.

With p_is = softmax(x_i' B)_s the probability of secret s and L_is = P(z_i | s), report i has the
probability P_i = sum_s p_is L_is, and given its report the secret has the posterior probabilities
r_is = p_is L_is / P_i. Derivatives by the linear predictors are

    d log P_i / d eta_is = r_is - p_is,
    - d^2 log P_i / d eta_is d eta_it = (diag p - p p')_st - (diag r - r r')_st:

the information of the secrets minus that which the reports withhold (Louis 1982). The first term
alone, the complete information, is positive semidefinite; the difference need not be, which is why
the likelihood is not concave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp

from ibukit._ground.arguments import Floats, Ints


class Derivatives(NamedTuple):
    """Return log-likelihood, gradient and observed information at some coefficients."""

    value: float
    gradient: Floats
    """Shape (p,), the coefficients of one secret after the other."""
    observed: Floats
    """Shape (p, p)."""


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The log-likelihood of coefficients, shape (k - 1, d + 1), a row for each secret but one.

    Parameters
    ----------
    design : ndarray, shape (n, d + 1)
        Covariates of each respondent.
    log_rows : ndarray, shape (s, k)
        Logarithms of the probabilities of the distinct reports; -inf where a secret excludes one.
    at : ndarray of int, shape (n,)
        The row of `log_rows` of each respondent.
    weights : ndarray, shape (n,)
        Above 0; ones if respondents count equally.
    """

    design: Floats
    log_rows: Floats
    at: Ints
    weights: Floats

    @property
    def total(self) -> float:
        """Number of respondents, or the sum of their weights."""
        return float(self.weights.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the coefficients, (k - 1, d + 1)."""
        return self.log_rows.shape[1] - 1, self.design.shape[1]

    def value(self, coefficients: Floats) -> float:
        """Return the log-likelihood; finite for finite coefficients."""
        log_p = log_softmax(predictors(self.design, coefficients), axis=1)
        return float(self.weights @ logsumexp(log_p + self.log_rows[self.at], axis=1))

    def derivatives(self, coefficients: Floats) -> Derivatives:
        """Return the log-likelihood with its gradient and observed information."""
        log_p, log_r, log_reports = self._logs(coefficients)
        p, r = np.exp(log_p), np.exp(log_r)
        score = (r - p)[:, 1:] * self.weights[:, None]

        def withheld(s: int, t: int) -> Floats:
            own = p[:, s] - r[:, s] if s == t else 0.0
            return own - (p[:, s] * p[:, t] - r[:, s] * r[:, t])

        return Derivatives(
            float(self.weights @ log_reports),
            (score.T @ self.design).ravel(),
            self._information(withheld),
        )

    def complete_information(self, coefficients: Floats) -> Floats:
        """Return the information if the secrets were known, positive semidefinite, shape (p, p)."""
        p = probabilities(self.design, coefficients)

        def known(s: int, t: int) -> Floats:
            return (p[:, s] if s == t else 0.0) - p[:, s] * p[:, t]

        return self._information(known)

    def scores(self, coefficients: Floats) -> Floats:
        """Return the gradient of each respondent's log-likelihood, without weights, (p, n)."""
        log_p, log_r, _ = self._logs(coefficients)
        score = (np.exp(log_r) - np.exp(log_p))[:, 1:]
        return np.einsum("is,ij->sji", score, self.design).reshape(-1, len(self.at))

    def _logs(self, coefficients: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log p, log r, both (n, k), and the log-probabilities of the reports, (n,)."""
        log_p = log_softmax(predictors(self.design, coefficients), axis=1)
        joint = log_p + self.log_rows[self.at]
        log_reports = logsumexp(joint, axis=1)
        return log_p, joint - log_reports[:, None], log_reports

    def _information(self, entry: Callable[[int, int], Floats]) -> Floats:
        """Return sum_i w_i h_i (x) x_i x_i' for entries h_i of two secrets other than the first."""
        q, d = self.shape
        blocks = np.empty((q, d, q, d))
        for s in range(q):
            for t in range(s + 1):
                weights = self.weights * entry(s + 1, t + 1)
                block = self.design.T @ (self.design * weights[:, None])
                blocks[s, :, t] = block
                blocks[t, :, s] = block.T
        return blocks.reshape(q * d, q * d)


def predictors(design: Floats, coefficients: Floats) -> Floats:
    """Return the linear predictors, shape (n, k); those of the first secret are 0."""
    return np.hstack([np.zeros((len(design), 1)), design @ coefficients.T])


def probabilities(design: Floats, coefficients: Floats) -> Floats:
    """Return the probability of each secret, shape (n, k)."""
    return np.exp(log_softmax(predictors(design, coefficients), axis=1))
