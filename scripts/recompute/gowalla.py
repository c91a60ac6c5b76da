"""Recompute data/gowalla/ from the check-ins of SNAP. Needs the network (about 100 MB).

python scripts/recompute/gowalla.py [--from FOLDER] [--to FOLDER]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from _download import obtain, options, write

from ibukit import datasets

CHECKINS = "https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz"
CITIES = ("manhattan", "manhattan_exact_km", "paris", "san_francisco", "san_francisco_24x17")
CHUNK = 500_000


def positions(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Latitudes and longitudes of the check-ins, in pieces of the tab-separated file."""
    columns = ["user", "time", "lat", "lon", "place"]
    for piece in pd.read_csv(
        path, sep="\t", names=columns, usecols=["lat", "lon"], chunksize=CHUNK
    ):
        known = piece.dropna()
        yield known["lat"].to_numpy(), known["lon"].to_numpy()


def count_checkins(path: Path, city: str) -> np.ndarray:
    """The number of check-ins in each cell of the city's grid."""
    grid = datasets.load_gowalla(city).alphabet
    counts = np.zeros(len(grid), dtype=np.int64)
    for lat, lon in positions(path):
        counts += np.bincount(grid.locate(lat, lon, outside="drop"), minlength=len(grid))
    return counts


def main() -> None:
    """Write one table for each city."""
    chosen = options(__doc__ or "", [Path(CHECKINS).name])
    path = obtain(CHECKINS, None, chosen.folder)
    for city in CITIES:
        grid = datasets.load_gowalla(city).alphabet
        north, east = grid.edges()
        lat, lon = (north[1:] + north[:-1]) / 2, (east[1:] + east[:-1]) / 2
        cells = zip(
            np.ndindex(grid.n_rows, grid.n_cols), count_checkins(path, city).tolist(), strict=True
        )
        rows = [(r, c, f"{lat[r]:.6f}", f"{lon[c]:.6f}", count) for (r, c), count in cells]
        write(
            chosen.to / "gowalla" / f"{city}.csv",
            ["row", "col", "lat_center", "lon_center", "count"],
            rows,
        )


if __name__ == "__main__":
    main()
