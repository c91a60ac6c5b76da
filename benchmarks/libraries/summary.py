"""The results as one small table in Markdown for each setting, for the page and for the screen."""

from __future__ import annotations

import pandas as pd

SCALE = 1e4
HEAD = [
    "protocol",
    "its estimate",
    "its other estimate",
    "debiased",
    "MLE",
    "its seconds",
    "MLE's seconds",
    "of these, conversion",
    "clients' seconds",
]
PEOPLE = {"ages": "the ages of Adult", "words": "words by Zipf's law"}


def markdown(table: pd.DataFrame) -> str:
    """The tables of all settings, with squared errors in units of 1e-4."""
    lines = []
    for (people, k, n, epsilon), rows in table.groupby(["people", "k", "n", "epsilon"], sort=False):
        lines += ["", f"**{PEOPLE[people]}, k = {k:,}, {n:,} people, ε = {epsilon:g}**", ""]
        lines += [_row(HEAD), _row(["---"] * len(HEAD))]
        lines += [
            _line(*key, one) for key, one in rows.groupby(["library", "protocol"], sort=False)
        ]
    return "\n".join(lines[1:]) + "\n"


def _line(library: str, protocol: str, rows: pd.DataFrame) -> str:
    name = f"{library} {protocol}"
    by = rows.set_index("estimate")
    theirs = [one for one in by.index if not one.startswith("ibukit")]
    if "ibukit, MLE" not in by.index:
        return _row([name, f"`{by.note.iloc[0]}`", *["–"] * (len(HEAD) - 2)])
    other = f"{_error(by, theirs[1])} ({theirs[1].split(', ')[-1]})" if len(theirs) > 1 else "–"
    ours = "ibukit, debiased"
    seconds = [_seconds(by, one) for one in (theirs[0], "ibukit, MLE")]
    conversion = f"{by.conversion_seconds['ibukit, MLE']:.2g}"
    clients = f"{by.client_seconds[theirs[0]]:.2g}, {by.client_seconds['ibukit, MLE']:.2g}"
    debiased = _error(by, ours) if ours in by.index else "–"
    return _row(
        [
            name,
            _error(by, theirs[0]),
            other,
            debiased,
            _error(by, "ibukit, MLE"),
            *seconds,
            conversion,
            clients,
        ]
    )


def _seconds(by: pd.DataFrame, name: str) -> str:
    """Seconds from the library's reports on; ours include the conversion of the reports."""
    seconds = by.seconds[name]
    if pd.isna(seconds):
        return str(by.note[name])
    if name.startswith("ibukit"):
        seconds += by.conversion_seconds[name]
    return f"{seconds:.2g}"


def _error(by: pd.DataFrame, name: str) -> str:
    if pd.isna(by.squared_error[name]):
        return "–"
    shown = _short(SCALE * by.squared_error[name])
    if pd.isna(by.standard_error[name]):  # too few repetitions for one
        return shown
    return f"{shown} ± {_short(SCALE * by.standard_error[name])}"


def _short(x: float) -> str:
    return f"{x:.2g}" if abs(x) < 10 else f"{x:,.0f}"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


SHORT = {
    "pure-ldp": (
        "DE",
        "SUE",
        "OUE",
        "BLH",
        "OLH",
        "SHE",
        "THE",
        "HM",
        "HR",
        "CMS",
        "HCMS",
        "PCS",
        "RAPPOR",
    ),
    "multi-freq-ldpy": ("SS", "L-OSUE", "L-GRR"),
    "ldp-toolbox": ("OUE", "OLH"),
}
"""What the README shows; the other protocols of these libraries are the same ones again."""


def short(table: pd.DataFrame) -> str:
    """The results for ten thousand people at the least and the largest epsilon.

    They are the published estimate, that estimate repaired by the library, and the MLE.
    """
    head = [
        "protocol",
        "published, ε = 1",
        "repaired",
        "MLE",
        "published, ε = 4",
        "repaired",
        "MLE",
        "its seconds",
        "MLE's",
    ]
    lines = [_row(head), _row(["---"] * len(head))]
    kept = table[(table.people == "ages") & (table.n == 10_000)]
    for library, protocols in SHORT.items():
        for protocol in protocols:
            cells = [f"{library} {protocol}"]
            for epsilon in (1.0, 4.0):
                here = (
                    (kept.library == library)
                    & (kept.protocol == protocol)
                    & (kept.epsilon == epsilon)
                )
                by = kept[here].set_index("estimate")
                theirs = [_error(by, one) for one in by.index if not one.startswith("ibukit")]
                # all libraries but one repair their estimates before they return anything
                first = theirs[:2] if library == "pure-ldp" else ["–", theirs[0]]
                cells += [*first, *["–"] * (2 - len(first)), _error(by, "ibukit, MLE")]
            seconds = [_seconds(by, one) for one in (by.index[0], "ibukit, MLE")]
            lines.append(_row([*cells, *seconds]))
    return "\n".join(lines) + "\n"
