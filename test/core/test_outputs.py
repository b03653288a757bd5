"""Outputs appear complete or not at all, and replace only what the package wrote."""

import json
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from inertid_ros.core import outputs
from inertid_ros.core.errors import OutputError
from inertid_ros.core.outputs import MANIFEST, check_directory, check_file, write_directory, write_file

CONTENT = {"a.txt": b"new a", "b.txt": b"new b"}
KIND = "result"


def _names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def written(tmp_path):
    write_directory(tmp_path / "out", KIND, CONTENT)
    return tmp_path / "out"


def test_a_directory_is_written_whole(tmp_path):
    out = tmp_path / "deep" / "out"
    write_directory(out, KIND, CONTENT)
    assert {name: (out / name).read_bytes() for name in CONTENT} == CONTENT
    assert _names(out) == [MANIFEST, "a.txt", "b.txt"] and _names(tmp_path / "deep") == ["out"]
    assert list(json.loads((out / MANIFEST).read_text())["files"]) == ["a.txt", "b.txt"]


def test_an_empty_directory_is_taken_and_a_full_one_only_when_told(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    write_directory(target, KIND, CONTENT)
    for force, remedy in ((None, "choose another path$"), (False, "choose another path, or replace it with --force$")):
        with pytest.raises(OutputError, match=f"out: exists and is not empty; {remedy}"):
            write_directory(target, KIND, {"c.txt": b"c"}, force)
    assert _names(target) == [MANIFEST, "a.txt", "b.txt"]
    write_directory(target, KIND, {"c.txt": b"c"}, force=True)
    assert _names(target) == [MANIFEST, "c.txt"] and _names(tmp_path) == ["out"]


def test_replacing_works_without_the_system_call(written, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs.ctypes, "CDLL", lambda *args, **keywords: object())
    write_directory(written, KIND, {"c.txt": b"c"}, force=True)
    write_file(tmp_path / "file", b"x")
    assert _names(written) == [MANIFEST, "c.txt"] and _names(tmp_path) == ["file", "out"]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_directory(tmp_path / "out", KIND, CONTENT)
        write_file(tmp_path / "file", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "rename", "replace"])
def test_a_failure_leaves_the_old_and_nothing_else(call, written, tmp_path, monkeypatch):
    write_file(tmp_path / "file", b"old")

    def fail(*args):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(outputs.os, call, fail)
    if call != "replace":
        with pytest.raises(OutputError, match=r"cannot be written \(Input/output error\)"):
            write_directory(written, KIND, {"c.txt": b"c"}, force=True)
    if call != "rename":
        with pytest.raises(OutputError, match=r"cannot be written \(Input/output error\)"):
            write_file(tmp_path / "file", b"new", force=True)
    assert _names(tmp_path) == ["file", "out"]
    assert _names(written) == [MANIFEST, "a.txt", "b.txt"] and (tmp_path / "file").read_bytes() == b"old"


def test_a_reader_never_finds_the_directory_missing_or_mixed(tmp_path):
    target, done, seen = tmp_path / "out", threading.Event(), set()
    write_directory(target, KIND, {"n": b"0", "m": b"0"})
    problems = []

    def read():
        while not done.is_set():
            try:
                folder = os.open(target, os.O_RDONLY)
            except FileNotFoundError as error:
                problems.append(error)
                continue
            try:
                pair = []
                for name in ("n", "m"):
                    with open(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
                        pair.append(file.read())
                seen.add(tuple(pair))
            except FileNotFoundError:
                pass  # the old directory, being removed
            finally:
                os.close(folder)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(60):
        write_directory(target, KIND, {"n": b"%d" % number, "m": b"%d" % number}, force=True)
    done.set()
    reader.join()
    assert not problems
    assert all(n == m for n, m in seen) and len(seen) > 1


def _bind(path):
    with socket.socket(socket.AF_UNIX) as end:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            end.bind(path.name)
        finally:
            os.chdir(here)


def _device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices can be made by root alone")


THINGS = {
    "link": lambda path: path.symlink_to("file"), "link to nowhere": lambda path: path.symlink_to("nothing"),
    "link to a device": lambda path: path.symlink_to("/dev/null"), "FIFO": os.mkfifo, "socket": _bind,
    "device": _device,
}  # fmt: skip


@pytest.mark.parametrize("thing", THINGS)
def test_only_regular_files_and_directories_are_replaced(thing, tmp_path):
    (tmp_path / "file").write_bytes(b"foreign")
    path = tmp_path / "thing"
    THINGS[thing](path)
    before = path.lstat()
    for refused in (
        lambda: check_file(path, force=True), lambda: write_file(path, b"x", force=True),
        lambda: check_directory(path, KIND, force=True), lambda: write_directory(path, KIND, CONTENT, force=True),
    ):  # fmt: skip
        with pytest.raises(OutputError, match=f"thing: is a {thing.split()[0]}"):
            refused()
    assert path.lstat() == before and _names(tmp_path) == ["file", "thing"]
    assert (tmp_path / "file").read_bytes() == b"foreign"


def test_a_directory_above_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    write_directory(tmp_path / "link" / "out", KIND, CONTENT)
    write_file(tmp_path / "link" / "file", b"x")
    assert _names(tmp_path / "disk") == ["file", "out"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda out: (out / "notes.txt").write_text("x"), "holds notes.txt, which inertid did not write"),
        (lambda out: (out / "raw").mkdir(), "holds raw/, which"),
        (lambda out: [(out / f"{n}.bag").touch() for n in range(5)], "holds 0.bag, 1.bag, 2.bag and more, which"),
        (lambda out: (out / "a.txt").write_bytes(b"edited"), r"holds a.txt \(changed\), which"),
        (lambda out: (out / MANIFEST).unlink(), "holds a.txt, b.txt and no list of inertid's files .*: mv /"),
        (lambda out: (out / MANIFEST).write_text("[" * 10**5), "no list of inertid's files"),
        (lambda out: (out / MANIFEST).write_text('{"kind": "result", "files": []}'), "no list of inertid's files"),
        (lambda out: write_directory(out, "motion", CONTENT, True), "is a result, which a motion does not replace"),
    ],
)
def test_a_directory_that_holds_anything_else_stays(spoil, message, written):
    with pytest.raises(OutputError, match=message):
        spoil(written)
        check_directory(written, KIND, force=True)
    before = {path: path.read_bytes() for path in written.iterdir() if path.is_file()}
    if "motion" not in message:
        with pytest.raises(OutputError, match=message):
            write_directory(written, KIND, {"c.txt": b"c"}, force=True)
        with pytest.raises(OutputError, match="exists and is not empty; choose another path$"):
            check_directory(written, KIND, force=False)  # --force would not help
    assert {path: path.read_bytes() for path in written.iterdir() if path.is_file()} == before


def test_an_output_that_lost_files_is_still_its_own(written):
    (written / "a.txt").unlink()
    write_directory(written, KIND, {"c.txt": b"c"}, force=True)
    assert _names(written) == [MANIFEST, "c.txt"]


def test_a_directory_that_is_written_into_meanwhile_comes_back(written, monkeypatch):
    exchange = outputs._exchange

    def late(first, second):
        if not (second / "notes.txt").exists() and not (first / "notes.txt").exists():
            (second / "notes.txt").write_text("x")
        exchange(first, second)

    monkeypatch.setattr(outputs, "_exchange", late)
    with pytest.raises(OutputError, match=r"holds notes.txt"):
        write_directory(written, KIND, {"c.txt": b"c"}, force=True)
    assert _names(written) == [MANIFEST, "a.txt", "b.txt", "notes.txt"] and _names(written.parent) == ["out"]


@pytest.mark.parametrize("through_link", [False, True])
def test_inputs_of_the_command_stay(through_link, written, tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    around = tmp_path
    if through_link:
        (tmp_path / "link").symlink_to(".")
        around = tmp_path / "link"
    for inputs, message in (
        ([around / "out"], "out: is an input of this command"),
        ([around / "absent", around / "out" / "a.txt"], "out: holds .*a.txt, an input of this command"),
        ([around], "out: belongs to .*, an input of this command"),
    ):
        with pytest.raises(OutputError, match=message):
            check_directory(written, KIND, True, inputs)
    for inputs, message in (([around / "file"], "file: is an input"), ([around], "file: belongs to .*, an input")):
        with pytest.raises(OutputError, match=message):
            check_file(tmp_path / "file", True, inputs)
    check_directory(written, KIND, True, [tmp_path / "file", tmp_path / "absent"])


def test_the_working_directory_stays(written, monkeypatch):
    monkeypatch.chdir(written)
    for path in (".", "../out", written):
        with pytest.raises(OutputError, match="is the working directory"):
            check_directory(path, KIND, force=True)
    write_file("new", b"x")


def test_a_mount_point_stays(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(outputs.os.path, "ismount", lambda path: Path(path).name == "out")
    with pytest.raises(OutputError, match="out: is a mount point"):
        check_directory(tmp_path / "out", KIND)


def test_what_cannot_be_written_is_found_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to("nothing")
    for name, message in (
        ("x" * 256, "File name too long"), ("deep/" + "x" * 256, "File name too long"),
        ("x" * 256 + "/out", "File name too long"), ("file/out", "file is not a directory"),
        ("file/deep/out", "file is not a directory"), ("nowhere/out", "nowhere is not a directory"), ("a\0b", "NUL"),
    ):  # fmt: skip
        for check in (lambda path: check_file(path), lambda path: check_directory(path, KIND)):
            with pytest.raises(OutputError, match=message):
                check(tmp_path / name)
    with pytest.raises(OutputError, match="cannot be written"):
        check_directory("/proc/results/out", KIND)
    for name in ("x" * 255, "deep/er/out"):
        check_file(tmp_path / name)
        check_directory(tmp_path / name, KIND)
    with pytest.raises(OutputError, match="File name too long"):
        check_directory(tmp_path / "bag", KIND, file="x" * 256)
    assert _names(tmp_path) == ["file", "nowhere"]
    write_directory(tmp_path / ("x" * 255), KIND, CONTENT)
    write_file(tmp_path / ("y" * 255), b"x")


def test_a_file_that_appears_meanwhile_is_not_replaced_without_force(tmp_path, monkeypatch):
    check = outputs.check_file

    def late(target, force):
        check(target, force)
        target.write_bytes(b"foreign")

    monkeypatch.setattr(outputs, "check_file", late)
    with pytest.raises(OutputError, match="File exists"):
        write_file(tmp_path / "file", b"x")
    assert (tmp_path / "file").read_bytes() == b"foreign"
