"""The base of survey designs that ask two samples of people in two ways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.random import Generator

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import CountsLike, LabelsLike
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.surveys.design import two_labels
from ibukit.tally.tally import Tally


@dataclass(frozen=True)
class TwoSampleDesign(arguments.ReadOnlyArrays, ABC):
    """Two samples of one population, asked in two ways, whose tallies are pooled.

    Chance puts each person into one of the samples. Both samples have the same secrets: the
    sensitive attribute together with whatever else is unknown, such as the answer to an innocent
    question.

    Parameters
    ----------
    labels : sequence of two labels
        The label of people without the sensitive attribute, then the label of people with it, such
        as ("no", "yes").

    Raises
    ------
    AlphabetMismatch
        If there are not two labels.
    ValueError
        If a number of the design is out of its range.

    See Also
    --------
    SurveyDesign : Designs with one sample.

    Examples
    --------
    In tables a column says in which sample a person was:

    >>> import ibukit as ik, pandas as pd
    >>> design = ik.surveys.CheatingDetection(["no", "yes"], p=(0.25, 0.75))
    >>> table = pd.DataFrame({"report": ["no", "yes", "no", "yes"], "sample": [1, 1, 2, 2]})
    >>> samples = dict(zip([1, 2], design.samples))
    >>> ik.Tally.from_table(table, samples, by="sample").n
    4
    """

    labels: Any

    def __post_init__(self) -> None:
        """Check and convert the labels; subclasses also check their own parameters."""
        self._keep(labels=two_labels(self.labels))

    @abstractmethod
    def make_samples(self) -> tuple[MatrixMechanism, MatrixMechanism]:
        """Make the mechanisms of both samples; `samples` keeps them."""

    @property
    @abstractmethod
    def sensitive(self) -> dict[Any, float]:
        """All secrets with the attribute, each with the weight 1, for an interval's `of=`."""

    @cached_property
    def samples(self) -> tuple[MatrixMechanism, MatrixMechanism]:
        """The mechanisms of the first and of the second sample, over the same secrets."""
        return self.make_samples()

    @property
    def alphabet(self) -> Alphabet:
        """The secrets of both samples."""
        return self.samples[0].alphabet

    @property
    def epsilon(self) -> float:
        """The larger of the tight local-DP levels of both samples."""
        return max(sample.epsilon for sample in self.samples)

    def tally(self, first: LabelsLike, second: LabelsLike, *, codes: bool = False) -> Tally:
        """Count the reports of both samples into one tally.

        Parameters
        ----------
        first, second : sequence of reports
            The reports of the people in the first and in the second sample, as `Mechanism.tally`
            reads them.
        codes : bool
            Whether the reports are given as places in their list instead of labels.
        """
        one, two = self.samples
        return one.tally(first, codes=codes) + two.tally(second, codes=codes)

    def tally_counts(
        self, first: CountsLike, second: CountsLike, *, weighted: bool = False
    ) -> Tally:
        """Make one tally of reports that are already counted.

        Parameters
        ----------
        first, second : array_like of int, or mapping or Series
            Counts of each report in both samples, as `FiniteMechanism.tally_counts` reads them.
        weighted : bool
            Whether the counts are sums of weights.
        """
        one, two = self.samples
        pooled = one.tally_counts(first, weighted=weighted)
        return pooled + two.tally_counts(second, weighted=weighted)

    def simulate(self, first: CountsLike, second: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of two whole samples.

        Parameters
        ----------
        first, second : array_like of int, shape (k,), or mapping or Series
            Number of people with each secret in the first and in the second sample.
        rng : numpy.random.Generator
        """
        one, two = self.samples
        return one.simulate(first, rng) + two.simulate(second, rng)
