"""Recompute data/adult/ from the files of UCI Adult. Needs the network.

python scripts/recompute/adult.py [--from FOLDER] [--to FOLDER]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from _download import obtain, options, write

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
# recorded by many projects that use the files
HASHES = {
    "adult.data": "sha256:5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "sha256:a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}


def count_people(lines: Iterable[str]) -> tuple[Counter[int], Counter[str]]:
    """Ages and work classes in lines of adult.data, or of adult.test after its comment."""
    ages: Counter[int] = Counter()
    classes: Counter[str] = Counter()
    for line in lines:
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 15:  # a blank line at the end, or the comment
            continue
        ages[int(fields[0])] += 1
        classes[fields[1]] += 1
    return ages, classes


def main() -> None:
    """Write ages.csv and workclass.csv of all people, and ..._train.csv of the training file."""
    chosen = options(__doc__ or "", list(HASHES))
    paths: list[Path] = [obtain(UCI + name, known, chosen.folder) for name, known in HASHES.items()]
    (train_ages, train_classes), (test_ages, test_classes) = (
        count_people(path.read_text("utf-8").splitlines()) for path in paths
    )
    folder = chosen.to / "adult"
    write(folder / "ages.csv", ["age", "count"], sorted((train_ages + test_ages).items()))
    write(folder / "ages_train.csv", ["age", "count"], sorted(train_ages.items()))
    write(
        folder / "workclass.csv",
        ["workclass", "count"],
        (train_classes + test_classes).most_common(),
    )
    write(folder / "workclass_train.csv", ["workclass", "count"], train_classes.most_common())


if __name__ == "__main__":
    main()
