"""Recompute data/taxi/ from the yellow-cab trips of great_expectations. Needs the network.

python scripts/recompute/taxi.py [--from FOLDER] [--to FOLDER]
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
from _download import obtain, options, write

SAMPLES = (
    "https://raw.githubusercontent.com/great-expectations/great_expectations/"
    "3dbf9f8bf7fc6b4e848c054f9333cfdfa3f8f2e1/tests/test_sets/taxi_yellow_tripdata_samples/"
)
YEARS = (2018, 2019, 2020)
LABELS = {
    0: "missing (flex fare, blank in source)",
    1: "credit card",
    2: "cash",
    3: "no charge",
    4: "dispute",
}


def count_trips(path: Path) -> tuple[Counter[int], Counter[int]]:
    """Trips of a month by distance, in hundredths of a mile, and by way of payment (blank is 0)."""
    trips = pd.read_csv(path, usecols=["trip_distance", "payment_type"])
    hundredths = (trips["trip_distance"] * 100).round().astype(int)
    payments = trips["payment_type"].fillna(0).astype(int)
    return Counter(hundredths[hundredths > 0].tolist()), Counter(payments.tolist())


def bins(hundredths: Counter[int], size: int = 3, n_bins: int = 1000) -> list[int]:
    """Counts of the bins (0, size], (size, 2 size], ... hundredths of a mile, without the rest."""
    counts = [0] * n_bins
    for distance, trips in hundredths.items():
        if distance <= size * n_bins:
            counts[(distance - 1) // size] += trips
    return counts


def main() -> None:
    """Write the three tables."""
    names = [
        f"yellow_tripdata_sample_{year}-{month:02d}.csv" for year in YEARS for month in range(1, 13)
    ]
    chosen = options(__doc__ or "", names)
    distances = {year: Counter[int]() for year in YEARS}
    payments = {year: Counter[int]() for year in YEARS}
    for name in names:
        year = int(name.removeprefix("yellow_tripdata_sample_")[:4])
        by_distance, by_payment = count_trips(obtain(SAMPLES + name, None, chosen.folder))
        distances[year] += by_distance
        payments[year] += by_payment
    total = sum(distances.values(), Counter[int]())
    folder = chosen.to / "taxi"
    write(
        folder / "distances_hundredths.csv",
        ["distance_centimiles", *(f"count_{year}" for year in YEARS), "count"],
        [(d, *(distances[year][d] for year in YEARS), total[d]) for d in sorted(total)],
    )
    write(
        folder / "distances_1000_bins.csv",
        ["bin", "left_open_mi", "right_closed_mi", "count"],
        [
            (i, round(0.03 * i, 2), round(0.03 * (i + 1), 2), count)
            for i, count in enumerate(bins(total))
        ],
    )
    write(
        folder / "payments.csv",
        ["payment_type", "label", *YEARS, "count"],
        [
            (
                kind,
                label,
                *(payments[year][kind] for year in YEARS),
                sum(payments[year][kind] for year in YEARS),
            )
            for kind, label in LABELS.items()
        ],
    )


if __name__ == "__main__":
    main()
