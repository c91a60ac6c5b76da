"""Colour, marker and dashes of a series by its name, the same for an estimator in all figures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

Dash = str | tuple[int, tuple[int, ...]]

# Colours of estimators, by Okabe and Ito, for all kinds of colour vision. Their yellow is left out,
# because a yellow line on white cannot be seen.
HUES = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
# Colours of other series (mechanisms, cities, levels), in this order: Paul Tol's "muted" and a
# brown.
PALETTE = ("#332288", "#999933", "#882255", "#44AA99", "#CC6677", "#117733", "#661100")
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
MARKERS = "osv^DPX"
HATCHES = ("", "//", "..", "xx", "--", "oo", "\\\\")


@dataclass(frozen=True)
class Look:
    """Look of one series in a figure.

    Parameters
    ----------
    color : str
        Any colour of matplotlib.
    marker : str
    dash : str or tuple
        Dashes of a line.
    label : str
        Text in a legend.
    meaning : str
        Description of an estimator in a few words; empty for other series.

    Examples
    --------
    >>> ESTIMATORS["INV-P"].color
    '#0072B2'
    """

    color: str
    marker: str
    dash: Dash
    label: str
    meaning: str = ""

    def line(self) -> dict[str, Any]:
        """Return the look as keyword arguments of ``axes.plot``."""
        return {
            "color": self.color,
            "marker": self.marker,
            "linestyle": self.dash,
            "label": self.label,
        }


def _table() -> dict[str, Look]:
    """Return the looks of all estimators."""
    # Each estimator has one hue. If results are combined in two ways, [...]_M has the darker shade.
    black, blue, orange, green, pink, sky, amber = HUES
    rows: list[tuple[str, str, str, Dash, str]] = [
        ("truth", "#BDBDBD", "|", "-", "the distribution of the secrets; mostly an area"),
        ("reports", "#808080", ".", (0, (1, 1)), "the reports as they came"),
        ("INV", black, "x", ":", "matrix inversion, raw; the frequency oracle"),
        ("INV-N", amber, "v", "-.", "matrix inversion, negative entries set to 0, the rest scaled"),
        ("INV-P", blue, "s", "--", "matrix inversion, projected; Norm-Sub"),
        (
            "Norm-Cut",
            "#7F7F00",
            "^",
            (0, (3, 1)),
            "matrix inversion, the smallest entries set to 0",
        ),
        ("IBU", green, "o", "-", "the iterative Bayesian update, stopped"),
        ("MLE", orange, "D", (0, (5, 1, 1, 1, 1, 1)), "the certified maximum of the likelihood"),
        ("GIBU", orange, "*", "-", "the same of reports from several mechanisms"),
        ("smooth", pink, "P", (0, (8, 2)), "the penalised maximum of the likelihood"),
        ("EMS", "#8E4A77", "h", "--", "IBU with a smoothing step"),
        ("posterior mean", sky, "X", (0, (4, 1, 1, 1)), "Bayes' estimate under a Dirichlet prior"),
        ("[INV]_R", black, "+", "-", "inversion of each group, results combined"),
        ("[INV]_R-N", amber, "<", "-", "the same, normalised"),
        ("[INV]_R-P", blue, "p", "-", "the same, projected"),
        ("[INV]_R-V", "#7B3FA0", "*", "-", "the same, best weights, projected once"),
        ("[INV]_M", "#5A5A5A", "1", "--", "inversion of the average mechanism"),
        ("[INV]_M-N", "#8F6200", ">", "--", "the same, normalised"),
        ("[INV]_M-P", "#00497A", "d", "--", "the same, projected"),
        ("[IBU]_R", green, "s", "-.", "IBU of each group, results combined"),
        ("[IBU]_M", "#005F45", "^", "--", "IBU with the average mechanism"),
    ]
    return {
        name: Look(color, marker, dash, _typeset(name), says)
        for name, color, marker, dash, says in rows
    }


def _typeset(name: str) -> str:
    """Typeset the R and the M of combined estimators as subscripts."""
    return re.sub(r"\]_([RM])\b", r"]$_\1$", name)


ESTIMATORS = _table()
_ALIASES = {
    "original": "truth",
    "people": "truth",
    "true": "truth",
    "noisy reports": "reports",
    "reported": "reports",
    "debiased": "INV",
    "frequency oracle": "INV",
    "norm-mul": "INV-N",
    "norm-sub": "INV-P",
    "maximum": "MLE",
    "maximum likelihood": "MLE",
    "unfold": "MLE",
}
_NAMES = {name.casefold(): name for name in ESTIMATORS} | _ALIASES
# "[INV-P]_R", "INV_R-P" and "[RAP]$_R$-P" name the same estimator.
_COMBINED = re.compile(r"\[?(inv|ibu|rap)(-[np])?\]?_([rm])(-[npv])?\b")


def estimator_of(name: str) -> str | None:
    """Return the estimator of a series, such as "IBU" for "IBU, 300 steps", or None."""
    plain = " ".join(re.sub(r"[${}\\]|mathrm|^ik\.", "", name).casefold().split())
    combined = _COMBINED.match(plain)
    if combined:
        of, inner, way, post = combined.groups()
        plain = f"[{of.replace('rap', 'inv')}]_{way}{post or inner or ''}"
    # Look for the longest beginning of the name that ends with a word and is an estimator.
    words = [end.start() for end in re.finditer(r"[ ,;:(]|$", plain)]
    return next((_NAMES[plain[:end]] for end in reversed(words) if plain[:end] in _NAMES), None)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the looks of the series of one figure, by their names.

    An estimator has the same colour in every figure. Two forms of an estimator in one figure, such
    as "IBU, 300 steps" and "IBU, 1,000 steps", differ in marker and dashes. Other series get
    colours that no estimator has.

    Parameters
    ----------
    names : iterable of str

    Returns
    -------
    dict of name to Look

    Examples
    --------
    >>> found = looks(["INV-P", "IBU, 300 steps", "IBU, 1,000 steps", "k-RR"])
    >>> [look.color for look in found.values()]
    ['#0072B2', '#009E73', '#009E73', '#332288']
    >>> found["IBU, 300 steps"].marker, found["IBU, 1,000 steps"].marker
    ('o', 's')
    """
    found: dict[str, Look] = {}
    for name in map(str, names):
        if name in found:
            continue
        known = estimator_of(name)
        if known is None:
            # The number of other series so far decides the colour.
            i = sum(estimator_of(other) is None for other in found)
            colour, mark, dash = (
                PALETTE[i % len(PALETTE)],
                MARKERS[i % len(MARKERS)],
                DASHES[i % len(DASHES)],
            )
            found[name] = Look(colour, mark, dash, name)
        else:
            wanted = replace(ESTIMATORS[known], label=_typeset(name))
            found[name] = _distinct_look(
                wanted, [look for look in found.values() if look.color == wanted.color]
            )
    return found


def _distinct_look(wanted: Look, others: list[Look]) -> Look:
    """Return the look with the first marker and the first dashes that no other look has."""
    markers, dashes = {look.marker for look in others}, {look.dash for look in others}
    marker = next(
        (mark for mark in (wanted.marker, *MARKERS) if mark not in markers), wanted.marker
    )
    dash = next((dash for dash in (wanted.dash, *DASHES) if dash not in dashes), wanted.dash)
    return replace(wanted, marker=marker, dash=dash)
