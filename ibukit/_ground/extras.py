"""The package's extras, and the error for what one of them would install."""

from __future__ import annotations

from ibukit.errors import MissingExtra

# The extra of pyproject.toml that installs each package which is imported only if it is needed.
EXTRAS = {
    "arviz-stats": "bayes",
    "xarray": "bayes",
    "duckdb": "tables",
    "pyarrow": "tables",
    "pyyaml": "tables",
    "formulaic": "regression",
    "scikit-learn": "sklearn",
    "dask.distributed": "dask",
}


def missing_extra(needed_by: str, package: str) -> MissingExtra:
    """Return the error that says what needs a package of `EXTRAS`, and how to install it."""
    return MissingExtra(
        f"{needed_by} needs {package}, which is not installed: "
        f'pip install "ibukit[{EXTRAS[package]}]"'
    )
