"""Each recorded file has its hash, its script and its line in the table,
and a number that was changed is noticed.
"""

import json
import re
from pathlib import Path

import pytest

from foreign import record

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in record.RECORDED.glob("*.json"))
PINS = (HERE.parents[1] / "pyproject.toml").read_text("utf8")


@pytest.mark.parametrize("name", NAMES)
def test_a_record_has_its_hash_its_script_and_its_line_in_the_table(name):
    answers = record.read(name)
    assert (HERE / answers["script"]).is_file()
    assert f"| {answers['program']} | {answers['version']} |" in (HERE / "README.md").read_text(
        "utf8"
    )


def test_every_script_has_a_record_and_every_pin_its_version():
    assert sorted(path.stem for path in HERE.glob("record_*.py")) == [
        f"record_{name}" for name in NAMES
    ]
    pinned = dict(re.findall(r'"([\w-]+)==([\w.]+)"', PINS))
    for name in ("qif", "pyunfold", "multi_freq_ldpy", "pure_ldp", "clarabel", "opendp"):
        assert record.read(name)["version"] == pinned[name.replace("_", "-")], name


def test_a_record_that_was_changed_is_refused(tmp_path, monkeypatch):
    for path in record.RECORDED.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(record, "RECORDED", tmp_path)
    assert record.read("qif") == json.loads((tmp_path / "qif.json").read_text("utf8"))
    changed = (tmp_path / "qif.json").read_text("utf8").replace("0.57159", "0.57158", 1)
    (tmp_path / "qif.json").write_text(changed, "utf8")
    with pytest.raises(ValueError, match=r"qif\.json is not what was recorded.*make foreign"):
        record.read("qif")
