"""A channel of one's own, without a matrix, for long alphabets."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

import ibukit as ik
from ibukit.channels import Channel
from stranger.refusals import WithRefusals


@dataclass(frozen=True, eq=False)
class RefusalChannel(Channel):
    """Every secret makes report z with probability `same`,
    and its own report with `more` on top.
    """

    k: int
    own: np.ndarray
    same: np.ndarray
    more: np.ndarray

    @property
    def size(self):
        return len(self.own)

    def forward(self, theta):
        return theta.sum() * self.same + self.more * theta[self.own]

    def adjoint(self, w):
        return self.same @ w + np.bincount(
            self.own, self.more * w, minlength=self.k
        )

    def rows(
        self, secrets
    ):  # a shortcut: without it, one `forward` for each secret
        return self.same + self.more * (secrets[:, None] == self.own)


@dataclass(frozen=True)
class FastWithRefusals(WithRefusals):
    """The mechanism of before, with O(k) instead of O(k^2) numbers."""

    @cached_property
    def answers(self):
        return ik.RandomizedResponse(self.alphabet, self.epsilon)

    def channel(self, reports):
        silent = reports == self.k
        same = np.where(
            silent, self.refusal, (1 - self.refusal) * self.answers.lie
        )
        more = np.where(
            silent,
            0.0,
            (1 - self.refusal) * (self.answers.truth - self.answers.lie),
        )
        return RefusalChannel(
            self.k, np.where(silent, 0, reports), same, more
        )

    def draw(self, secrets, rng):
        reports = self.answers.draw(secrets, rng)
        return np.where(
            rng.random(len(reports)) < self.refusal, self.k, reports
        )

    simulate = (
        ik.Mechanism.simulate
    )  # by `draw`, and not by the rows of the matrix
