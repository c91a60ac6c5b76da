"""What stands beside a file that is saved: files of the user's own, and links that were planted."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import ibukit as ik
from faults import at_most
from ibukit.cli import main
from ibukit.files import atomic

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="links, users and modes are those of POSIX"
)
TALLY = ik.RandomizedResponse(["yes", "no", "?"], epsilon=1.0).tally_counts([60, 40, 7])
CHAPTER = b"a chapter, and three years of work\n" * 50
NOBODY = 65534
REFUSED = pytest.raises(ik.errors.ForeignFile, match=r"must leave the name of .*\.part free")


@pytest.fixture
def folder():
    """A folder that other users may look into, as that of pytest is not."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.mark.parametrize(
    "content", [CHAPTER, b"x", b"ibukit is a package\n", b"PAR1", b"\0" * 300, b"ibukit Tally"]
)
def test_a_file_whose_name_ends_in_part_is_kept(content, folder):
    (folder / "thesis.part").write_bytes(content)
    with REFUSED:
        TALLY.save(folder / "thesis")
    assert (folder / "thesis.part").read_bytes() == content
    assert not (folder / "thesis").exists()


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("content", [CHAPTER, b""])
def test_nothing_is_written_through_a_planted_link(link, content, folder):
    (folder / "victim").write_bytes(content)
    link(folder / "out.part", folder / "victim")
    with REFUSED:
        TALLY.save(folder / "out")
    assert (folder / "victim").read_bytes() == content
    assert not os.path.lexists(folder / "out")


def test_a_link_into_nothing_makes_no_file(folder):
    (folder / "out.part").symlink_to(folder / "new")
    with REFUSED:
        TALLY.save(folder / "out")
    assert not (folder / "new").exists()


def test_a_link_planted_at_the_last_moment_is_not_followed(folder, monkeypatch):
    """It is put there after a look at the name, and before the file is made."""
    (folder / "victim").write_bytes(CHAPTER)
    remove = atomic._remove_own

    def planted_then(part, flags):
        remove(part, flags)
        if not os.path.lexists(part):
            part.symlink_to(folder / "victim")

    monkeypatch.setattr(atomic, "_remove_own", planted_then)
    with REFUSED:
        TALLY.save(folder / "out")
    assert (folder / "victim").read_bytes() == CHAPTER


def _socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, _socket])
def test_a_pipe_or_a_folder_with_that_name_is_refused(make, folder):
    make(folder / "out.part")
    with at_most(60), REFUSED:
        TALLY.save(folder / "out")
    assert [each.name for each in folder.iterdir()] == ["out.part"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="only root can give files")
def test_a_part_file_of_another_user_is_not_used(folder):
    """Its owner could read and change the file for ever."""
    (folder / "out.part").touch()
    os.chown(folder / "out.part", NOBODY, NOBODY)
    with REFUSED:
        TALLY.save(folder / "out")


@pytest.mark.parametrize("name", ["tally", "out.csv", "out.json", "out.parquet"])
def test_what_a_killed_process_left_is_overwritten(name, folder):
    """Also a longer one, and one of a table, which has no first line of ours."""
    for left in (b"", atomic.MARK + bytes(10**5), b"ibukit Estimate 1 sha256 " + bytes(10**5)):
        (folder / f"{name}.part").write_bytes(left)
        atomic.replace(folder / name, b"new content")
        assert (folder / name).read_bytes() == b"new content"
        assert [each.name for each in folder.iterdir()] == [name]


@pytest.mark.parametrize("content", [b"", b"1", atomic.MARK, b"a,b\n" * 1000])
def test_a_content_of_any_length_is_written_whole(content, folder):
    for _ in range(2):
        atomic.replace(folder / "out", content)
        assert (folder / "out").read_bytes() == content


def test_content_and_name_are_on_the_disk_in_this_order(folder, monkeypatch):
    """What a crash of the machine leaves is the old file or the new one, not an empty one."""
    said, flush, rename = [], os.fsync, os.replace

    def flushed(descriptor):
        said.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        flush(descriptor)

    def renamed(*names):
        said.append("name")
        rename(*names)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    TALLY.save(folder / "tally")
    assert said == ["content", "name", "folder"]


def test_an_unfinished_file_of_ours_is_recognised(folder):
    """A table of any content that a killed process has half written is in nobody's way."""
    program = """if True:
        import os, sys
        from pathlib import Path
        from ibukit.files import atomic
        fdopen = os.fdopen
        # The process dies when some of the content has reached the disk.
        def dying(*about):
            file = fdopen(*about)
            class File:
                def write(self, content):
                    file.write(content[:5000])
                    file.flush()
                    os._exit(9)
                def __getattr__(self, name):
                    return getattr(file, name)
                def __enter__(self):
                    return self
                def __exit__(self, *about):
                    file.close()
            return File()
        os.fdopen = dying
        atomic.replace(Path(sys.argv[1]), b"label,probability\\n" * 1000)
        """
    run = subprocess.run([sys.executable, "-c", program, str(folder / "out.csv")], check=False)
    assert run.returncode == 9
    assert [each.name for each in folder.iterdir()] == ["out.csv.part"]
    atomic.replace(folder / "out.csv", b"label,probability\n")
    assert [each.name for each in folder.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o604, 0o444, 0o666])
def test_a_file_keeps_its_mode(kept, folder):
    path = folder / "private"
    for save in (TALLY.save, ik.mle(TALLY).save, ik.Privic(3).save):
        save(path)
        path.chmod(kept)
        save(path)
        assert mode(path) == oct(kept)


def test_a_cycle_and_the_command_line_keep_the_mode(folder):
    loop = ik.Privic(3, path=folder / "loop")
    (folder / "loop").chmod(0o600)
    loop.run([100, 100, 100], 1, 1)
    assert mode(folder / "loop") == "0o600"
    (folder / "r.csv").write_text("report\na\nb\n", "utf8")
    words = ["estimate", str(folder / "r.csv"), "--mechanism", "k-rr", "--labels", "a,b"]
    words += ["--epsilon", "1", "--out", str(folder / "out.csv")]
    assert main(words) == 0
    (folder / "out.csv").chmod(0o600)
    assert main(words) == 0
    assert mode(folder / "out.csv") == "0o600"


def test_a_new_file_has_the_mode_of_new_files(folder):
    before = os.umask(0o027)
    try:
        TALLY.save(folder / "out")
    finally:
        os.umask(before)
    assert mode(folder / "out") == "0o640"


def test_nobody_can_read_a_private_file_while_it_is_written(folder, monkeypatch):
    path, modes = folder / "private", []
    TALLY.save(path)
    path.chmod(0o600)
    set_access = atomic._set_access

    def look(file, *about):
        modes.append(oct(stat.S_IMODE(os.fstat(file.fileno()).st_mode)))
        set_access(file, *about)

    monkeypatch.setattr(atomic, "_set_access", look)
    TALLY.save(path)
    assert modes == ["0o600"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="only root can give files")
def test_a_file_keeps_its_owner(folder):
    path = folder / "theirs"
    TALLY.save(path)
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o640)
    TALLY.save(path)
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (NOBODY, NOBODY, "0o640")


@pytest.mark.parametrize(("kept", "now"), [(0o660, "0o600"), (0o664, "0o644"), (0o670, "0o600")])
def test_permissions_of_one_group_are_not_given_to_another(kept, now, folder, monkeypatch):
    """Where the old group cannot be kept, the new one may do what everybody may."""
    path = folder / "shared"
    TALLY.save(path)
    path.chmod(kept)
    old = path.stat()
    monkeypatch.setattr(Path, "stat", lambda self, **how: _of_group(old, self, how))

    def refuse(descriptor, owner, group):
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    atomic.replace(path, b"new")
    monkeypatch.undo()
    assert mode(path) == now


def _of_group(old, path, how):
    there = os.stat(path, **how)
    if there.st_ino != old.st_ino:
        return there
    return os.stat_result((*there[:5], there.st_gid + 1, *there[6:]))


def test_a_file_with_a_long_name_is_saved(folder):
    for name in ("x" * 251, "x" * 255, "é" * 127):
        TALLY.save(folder / name)
        assert ik.Tally.load(folder / name).n == TALLY.n
    assert len(list(folder.iterdir())) == 3


def test_circular_links_are_refused_by_name(folder):
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    with pytest.raises(ik.errors.ForeignFile, match="is a link to itself"):
        TALLY.save(folder / "a")
    assert {each.name for each in folder.iterdir()} == {"a", "b"}


def test_another_name_of_a_file_keeps_the_old_content(folder):
    (folder / "victim").write_bytes(CHAPTER)
    (folder / "out").hardlink_to(folder / "victim")
    TALLY.save(folder / "out")
    assert (folder / "victim").read_bytes() == CHAPTER


@pytest.mark.parametrize("path", ["a\0b", "\0"])
def test_a_null_character_is_no_name(path):
    for attempt in (TALLY.save, ik.Tally.load, lambda where: ik.Privic(3, path=where)):
        with pytest.raises(ValueError, match="path must be a path without null characters"):
            attempt(path)


def test_many_threads_that_save_one_file_leave_a_whole_one(folder):
    errors = []

    def save(tally):
        for _ in range(10):
            try:
                tally.save(folder / "out")
            except ik.errors.DataChanged:
                continue
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=save, args=(t,)) for t in (TALLY, TALLY + TALLY) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ik.Tally.load(folder / "out").n in (TALLY.n, 2 * TALLY.n)
    assert [each.name for each in folder.iterdir()] == ["out"]
