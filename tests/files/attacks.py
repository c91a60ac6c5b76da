"""Files with a right checksum that no `save` has written: what is in one, changed by hand."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import numpy as np
from numpy.lib.format import read_array


def opened(path: Path) -> tuple[str, dict, dict]:
    """The class in the first line, the values and the arrays."""
    head, _, body = path.read_bytes().partition(b"\n")
    file = io.BytesIO(body)
    values = json.loads(file.readline())
    arrays = {name: read_array(file, allow_pickle=False) for name in values["arrays"]}
    return head.split()[1].decode(), values, arrays


def forge(path: Path, kind: str, values: dict, arrays: dict, version: str = "1") -> None:
    """Write them with the checksum that they have."""
    body = io.BytesIO()
    body.write(json.dumps(values | {"arrays": list(arrays)}).encode() + b"\n")
    for array in arrays.values():
        np.save(body, array, allow_pickle=False)
    sign(path, kind, body.getvalue(), version)


def sign(path: Path, kind: str, body: bytes, version: str = "1") -> None:
    """Write any content with its checksum."""
    digest = hashlib.sha256(body).hexdigest()
    path.write_bytes(f"ibukit {kind} {version} sha256 {digest}\n".encode() + body)


class Content:
    """The arguments of the object in a file, to be read and set by name, arrays among them."""

    def __init__(self, values: dict, arrays: dict) -> None:
        self.fields, self.arrays = values["content"]["arguments"], arrays

    def __getitem__(self, name):
        value = self.fields[name]
        is_array = isinstance(value, dict) and "array" in value
        return self.arrays[value["array"]] if is_array else value

    def __setitem__(self, name, value):
        if isinstance(value, np.ndarray):
            self.arrays[self.fields[name]["array"]] = value
        else:
            self.fields[name] = value


def changed(path: Path, change) -> None:
    """Change the content of a file and sign it again."""
    kind, values, arrays = opened(path)
    change(Content(values, arrays))
    forge(path, kind, values, arrays)
