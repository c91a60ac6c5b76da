"""How an estimate answers in labels: one probability, tables, a map, JSON, a drawing."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.grid import Grid
from ibukit.errors import AlphabetMismatch
from ibukit.estimate import exports
from ibukit.tally.tally import Tally

if TYPE_CHECKING:
    import pandas as pd
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes


class Labelled:
    """What is read of an estimate through its alphabet."""

    distribution: Floats
    alphabet: Alphabet
    tally: Tally | None
    log_likelihood: float
    gap: float
    status: Any
    n_iter: int
    method: str

    @abstractmethod
    def interval(
        self,
        level: float = 0.95,
        of: Any = None,
        method: str = "profile",
        target: str = "distribution",
        **options: Any,
    ) -> tuple[Any, Any]:
        """An interval for each probability."""

    @property
    @abstractmethod
    def identified(self) -> NDArray[np.bool_]:
        """Whether the reports determine each probability."""

    def __getitem__(self, label: Any) -> float:
        """The probability of one label; on a grid of one (row, column) pair."""
        full = None if self.tally is None else self.tally.full_alphabet
        code = exports.code_of(label, self.alphabet, full)
        return (
            0.0 if code is None else float(self.distribution[code])
        )  # outside the part in use it is exactly 0

    def __len__(self) -> int:
        return len(self.distribution)

    # labels or probabilities? `to_series` has both; and Python would try the labels 0, 1, ... by
    # itself
    __iter__ = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.distribution, dtype=dtype, copy=copy)

    def to_series(self) -> pd.Series[float]:
        """The probabilities as a pandas Series, labels for an index.

        On a grid the index has the levels row and col.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(ik.Alphabet(["yes", "no"]), epsilon=2.0).tally_counts([600, 400])
        >>> ik.mle(tally).to_series().round(3).to_dict()
        {'yes': 0.631, 'no': 0.369}
        """
        import pandas as pd

        return pd.Series(
            self.distribution.copy(), index=_index_of(self.alphabet), name="probability"
        )

    def to_frame(self, level: float | None = 0.95, method: str | None = None) -> pd.DataFrame:
        """A row for each label: its probability, its interval, whether it is identified.

        Parameters
        ----------
        level : float, optional
            Of the intervals, strictly between 0 and 1. None leaves them out, and what else needs
            the reports.
        method : str, optional
            As `interval` takes it. By default "profile" for at most 300 secrets, where it applies,
            and "wald" for more.

        Returns
        -------
        pandas.DataFrame
            Columns probability, lower, upper (see `interval`) and `identified`; with None the first
            alone. Index: the labels, on a grid (row, col).

        Raises
        ------
        ValueError, TooLarge
            As `interval` and `identified`, unless `level` is None.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(ik.Alphabet(["yes", "no"]), epsilon=2.0).tally_counts([600, 400])
        >>> print(ik.mle(tally).to_frame(level=0.9).round(3))
               probability  lower  upper  identified
        label
        yes          0.631  0.598  0.665        True
        no           0.369  0.335  0.402        True
        """
        import pandas as pd

        columns = {"probability": self.distribution} | (
            {} if level is None else self._known(level, method)
        )
        return pd.DataFrame(columns, index=_index_of(self.alphabet))

    def to_geodataframe(
        self, level: float | None = None, method: str | None = None
    ) -> GeoDataFrame:
        """A row for each cell of a grid, with its rectangle.

        Parameters
        ----------
        level : float, optional
            Adds the columns lower, upper and identified, as `to_frame` has them.
        method : str, optional
            As `interval` takes it. By default "profile" for at most 300 secrets, where it applies,
            and "wald" for more.

        Returns
        -------
        geopandas.GeoDataFrame
            Columns row, col, probability and geometry, see `Grid.to_geodataframe`.

        Raises
        ------
        AlphabetMismatch
            If the alphabet is not a Grid.
        ValueError, TooLarge
            As `to_frame`, if a level is given.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(ik.Grid(1, 2, cell_size=0.5), epsilon=2.0).tally_counts([600, 400])
        >>> list(ik.mle(tally).to_geodataframe(level=0.95))
        ['row', 'col', 'probability', 'lower', 'upper', 'identified', 'geometry']
        """
        if not isinstance(self.alphabet, Grid):
            raise AlphabetMismatch(
                f"alphabet must be a Grid to be a map, got {exports.named(self.alphabet)}; to_frame() makes a table"
            )
        frame = self.alphabet.to_geodataframe(self.distribution, name="probability")
        for name, values in ({} if level is None else self._known(level, method)).items():
            frame.insert(frame.shape[1] - 1, name, values)
        return frame

    def _known(self, level: float, method: str | None) -> dict[str, NDArray[Any]]:
        lower, upper = self._ends_of_all(level, method)
        return {"lower": lower, "upper": upper, "identified": self.identified}

    def _ends_of_all(self, level: float, method: str | None) -> tuple[Floats, Floats]:
        return self.interval(
            level,
            method=import_module("ibukit.intervals").usual(self) if method is None else method,
        )

    def to_json(self, level: float | None = None, method: str | None = None) -> str:
        """One JSON object with the labels, the probabilities and all that is printed.

        Its names are labels, probabilities, gap, status, n_iter, method, log_likelihood, n, the
        number of reports (null without a tally), and dropped, how many were left out by reason.
        Infinite numbers, which JSON has not, are the texts "inf" and "-inf", as Python's `float`
        reads them; labels that JSON has not, such as dates, are texts too.

        Parameters
        ----------
        level : float, optional
            Adds the lists lower, upper and identified, as `to_frame` has them.
        method : str, optional
            As `interval` takes it. By default "profile" for at most 300 secrets, where it applies,
            and "wald" for more.

        Raises
        ------
        ValueError, TooLarge
            As `to_frame`, if a level is given.

        Examples
        --------
        >>> import ibukit as ik, json
        >>> estimate = ik.mle(ik.RandomizedResponse(2, epsilon=2.0).tally_counts([600, 400]))
        >>> again = json.loads(estimate.to_json())
        >>> again["labels"], again["status"], again["probabilities"] == estimate.distribution.tolist()
        ([0, 1], 'CLOSED_FORM', True)
        """
        return exports.as_json(
            labels=exports.plain_labels(self.alphabet),
            probabilities=self.distribution.tolist(),
            **(
                {}
                if level is None
                else {name: known.tolist() for name, known in self._known(level, method).items()}
            ),
            gap=exports.finite(self.gap),
            status=self.status.name,
            n_iter=self.n_iter,
            method=self.method,
            log_likelihood=exports.finite(self.log_likelihood),
            n=None if self.tally is None else self.tally.n,
            dropped={} if self.tally is None else dict(self.tally.dropped),
        )

    def plot(
        self, level: float | None = None, ax: Axes | None = None, method: str | None = None
    ) -> Axes:
        """Draw it: bars for labels, steps on a line, a map on a grid.

        Parameters
        ----------
        level : float, optional
            Adds the intervals of `interval`: whiskers, or a band. On a map cells are crossed out
            whose interval reaches down to 0.
        ax : matplotlib Axes, optional
        method : str, optional
            As `interval` takes it. By default "profile" for at most 300 secrets, where it applies,
            and "wald" for more.

        Returns
        -------
        matplotlib Axes
            Of many labels the most probable are drawn, and the axis says what the others have.

        Raises
        ------
        ValueError, TooLarge
            As `interval`, if a level is given.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(ik.Alphabet(["yes", "no"]), epsilon=2.0).tally_counts([600, 400])
        >>> [text.get_text() for text in ik.mle(tally).plot(level=0.95).get_yticklabels()]
        ['yes', 'no']
        """
        intervals = None if level is None else self._ends_of_all(level, method)
        axes: Axes = import_module("ibukit.plotting.estimates").draw(
            self, intervals, ax
        )  # as for `identified`
        return axes

    def _repr_html_(self) -> str:
        return exports.as_html(repr(self), self.alphabet, self.distribution)


def _index_of(alphabet: Alphabet) -> pd.Index:
    """The labels as an index called "label"; on a grid one of two levels, "row" and "col"."""
    import pandas as pd  # takes a second to import

    labels = alphabet.labels_of(np.arange(len(alphabet)))
    if labels.ndim == 2:
        return pd.MultiIndex.from_arrays(list(labels.T), names=["row", "col"])
    return pd.Index(labels, name="label", tupleize_cols=False)  # a label may be a tuple
