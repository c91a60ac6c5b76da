"""A frame as an Arrow stream, by which other libraries read it without a copy in between."""

from __future__ import annotations

from typing import Any

from ibukit._ground.extras import missing_extra


def arrow_stream(frame: Any, requested_schema: object = None) -> object:
    """Return a pandas frame as a capsule of the Arrow C stream interface.

    Labels of several types in a column are replaced by their texts, since a column of Arrow has one
    type.

    Raises
    ------
    MissingExtra
        If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise missing_extra("an Arrow stream", "pyarrow") from error
    mixed = [
        name
        for name, column in frame.items()
        if column.dtype == object and len(set(map(type, column))) > 1
    ]
    table = pa.Table.from_pandas(frame.astype(dict.fromkeys(mixed, str)), preserve_index=False)
    return table.__arrow_c_stream__(requested_schema)
