"""The reports of a regression, with the mechanism of each, and the columns beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.array_arguments import first_index
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import name_of_alphabet
from ibukit.errors import AlphabetMismatch, LikelihoodUnknown, TooLarge
from ibukit.mechanisms import Mechanism
from ibukit.tally.part import has_likelihood
from ibukit.tally.trials import refuse_trials

# Probabilities of reports that are kept, one for each secret and distinct report: 1 GB.
MAX_PROBABILITIES = 2**27


def column(name: str, value: Any, data: Any) -> Any:
    """Return a column of `data` if the argument is its name, else the argument."""
    if not isinstance(value, str):
        return value
    if data is None:
        raise TypeError(f"{name} must be values, or a column of data, got {value!r} without data")
    try:
        return data[value]
    except Exception as error:
        raise ValueError(f"{name} must be a column of data, which has no {value!r}") from error


def labels_of(name: str, values: Any, n: int) -> list[Any]:
    """Return a label for each respondent: of a cluster, a group, a mechanism."""
    labels = arguments.listed(name, values)
    if len(labels) != n:
        raise ValueError(f"{name} must have {n} values, one for each row of X, got {len(labels)}")
    for index, label in enumerate(labels):
        if arguments.is_missing(label):
            raise ValueError(
                f"{name} has a missing value at index {index}: enter it, or remove this person "
                "from all arguments, which is right only if such people are like the others"
            )
        try:
            hash(label)
        except TypeError:
            raise TypeError(f"{name} must hold labels, got {label!r} at index {index}") from None
    return labels


def mechanisms_of(mechanism: Any, by: Any, n: int, name: str) -> list[tuple[Mechanism, Ints]]:
    """Return the distinct mechanisms, and the respondents of each."""
    if by is None and isinstance(mechanism, Mechanism):
        return [(mechanism, np.arange(n))]
    if by is not None:
        each: Iterable[Any] = _by_values(mechanism, by, n, name)
    elif isinstance(mechanism, Mapping) or callable(mechanism):
        raise TypeError(
            f"mechanism must be a mechanism, got {arguments.brief(mechanism)}; if these are "
            "several mechanisms, also pass by, which says which of them each report came through"
        )
    else:
        # A text, which is iterable, is neither.
        given = None if isinstance(mechanism, str) else mechanism
        each = arguments.items("mechanism", given, "a mechanism, or one for each report")
    rows: dict[Any, list[int]] = {}
    count = -1
    for count, one in enumerate(each):
        if not isinstance(one, Mechanism):
            raise TypeError(
                f"mechanism must hold mechanisms, got {arguments.brief(one)} at index {count}"
            )
        rows.setdefault(one, []).append(count)
    if count + 1 != n:
        raise ValueError(
            f"mechanism must be one mechanism for all, or have {n}, one for each row of X, "
            f"got {count + 1}"
        )
    return [(one, np.array(places)) for one, places in rows.items()]


def _by_values(mechanism: Any, by: Any, n: int, name: str) -> Iterable[Mechanism]:
    # Libraries that read tables are loaded only if there is a column.
    from ibukit.tables.mechanism_choice import MechanismChoice

    choice = MechanismChoice(mechanism, None, (name,))
    for index, value in enumerate(labels_of("by", by, n)):
        try:
            yield choice((value,))
        except AlphabetMismatch:
            raise ValueError(
                f"by contains {value!r} at index {index}, but the argument mechanism has no entry "
                "for it: add one, or correct the value"
            ) from None


def likelihood_rows(
    reports: Any, groups: list[tuple[Mechanism, Ints]], codes: bool, n: int
) -> tuple[Floats, Ints, Alphabet]:
    """Return log P(z | s) of distinct reports, (s, k), each respondent's row, and the secrets."""
    alphabet = groups[0][0].alphabet
    at, rows, start = np.empty(n, dtype=np.int64), [], 0
    for mechanism, members in groups:
        _check(mechanism, alphabet)
        some = reports if len(members) == n else _taken(reports, members, n)
        tally = mechanism.tally(some, codes=codes)
        if tally.full_alphabet is not None:
            raise TooLarge(
                f"mechanism must be over a bounded alphabet, {tally.full_alphabet!r} has no end: "
                "make it on the part of it that you mean"
            )
        (part,) = tally.parts
        whole = arguments.whole_array("reports", some) if codes else mechanism.code_reports(some)
        kept = mechanism.check_reports(whole)
        if len(kept) != len(members):
            raise ValueError(
                f"reports must have {n} entries, one for each row of X, got {len(kept)}"
            )
        places = part.places(kept)
        if places is None:
            raise ValueError(
                f"mechanism must keep its reports as they are, {mechanism} merges them: take the "
                "one that it is made of"
            )
        if tally.k * (start + len(part.counts)) > MAX_PROBABILITIES:
            raise TooLarge(
                f"reports must have at most 2^27 probabilities, but there are {tally.k} secrets "
                f"and more than {start} distinct reports: merge reports and add up "
                "their columns, or take fewer secrets before reports are made"
            )
        with np.errstate(divide="ignore"):
            block = np.log(part.channel.rows(np.arange(tally.k)).T) + part.log_scale[:, None]
        rows.append(block)
        at[members] = places + start
        start += len(block)
    return np.concatenate(rows), at, alphabet


def _check(mechanism: Mechanism, alphabet: Alphabet) -> None:
    """Refuse a mechanism whose reports' probabilities are not known for each secret."""
    if mechanism.alphabet != alphabet:
        raise AlphabetMismatch(
            "mechanism must be over the same secrets for all respondents, got "
            f"{name_of_alphabet(alphabet)} and {name_of_alphabet(mechanism.alphabet)}"
        )
    if not has_likelihood(mechanism):
        raise LikelihoodUnknown(
            f"mechanism must know the probability of each report, {mechanism} keeps sums only"
        )
    if getattr(mechanism, "efficiency", None) is not None:
        raise ValueError(
            f"mechanism must not lose reports, {mechanism} has efficiencies: take "
            "mechanism.with_null_report, whose last report says that nothing was seen"
        )
    refuse_trials(
        [mechanism], "regress", "take MatrixMechanism(matrix) if its error does not matter"
    )
    if alphabet.bounded and len(alphabet) < 2:
        raise ValueError("mechanism must have at least two secrets, got one: nothing varies")


def _taken(reports: Any, members: Ints, n: int) -> Any:
    """Return the reports of some respondents, in the form they came in."""
    if isinstance(reports, (list, tuple)):
        size = len(reports)
    else:
        reports = arguments.whole_array("reports", reports)
        size = len(reports) if reports.ndim else 0
    if size != n:
        raise ValueError(f"reports must have {n} entries, one for each row of X, got {size}")
    if isinstance(reports, np.ndarray):
        return reports[members]
    return [reports[i] for i in members.tolist()]


def weights_of(weights: Any, n: int) -> Floats:
    """Return the weights of the respondents; ones if there are none."""
    if weights is None:
        return np.ones(n)
    found = arguments.numbers("weights", arguments.whole_array("weights", weights), "numbers")
    if found.shape != (n,):
        raise ValueError(
            f"weights must have {n} entries, one for each row of X, got shape {found.shape}"
        )
    refuse_bad_weights("weights", found)
    if not found.any():
        raise ValueError("weights must not all be 0: no one is left")
    return found.copy()


def refuse_bad_weights(name: str, weights: Floats) -> None:
    """Raise ValueError unless weights are finite, not negative, and their sum can be kept."""
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        raise ValueError(
            f"{name} must be finite and not negative, got {weights[bad][0]} at index "
            f"{first_index(bad)}"
        )
    arguments.refuse_too_many(name, weights)
