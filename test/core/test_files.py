"""Files and directories appear complete or not at all."""

import os
import stat
import threading

import pytest

from inertid_ros.core import atomic_files as files

CONTENT = {"a.txt": b"new a", "b.txt": b"new b"}


def _names(folder):
    return sorted(os.listdir(folder))


def test_a_directory_is_written_whole(tmp_path):
    files.write_directory(tmp_path / "deep" / "out", CONTENT, replace=False)
    assert {name: (tmp_path / "deep" / "out" / name).read_bytes() for name in CONTENT} == CONTENT
    assert _names(tmp_path / "deep") == ["out"]


def test_an_empty_directory_is_taken_and_a_full_one_only_when_told(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    files.write_directory(target, CONTENT, replace=False)
    with pytest.raises(FileExistsError):
        files.write_directory(target, {"c.txt": b"c"}, replace=False)
    assert _names(target) == ["a.txt", "b.txt"]
    files.write_directory(target, {"c.txt": b"c"}, replace=True)
    assert _names(target) == ["c.txt"] and _names(tmp_path) == ["out"]


def test_replacing_works_without_the_system_call(tmp_path, monkeypatch):
    monkeypatch.setattr(files.ctypes, "CDLL", lambda *args, **keywords: object())
    files.write_directory(tmp_path / "out", CONTENT, replace=False)
    files.write_directory(tmp_path / "out", {"c.txt": b"c"}, replace=True)
    assert _names(tmp_path / "out") == ["c.txt"] and _names(tmp_path) == ["out"]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        files.write_directory(tmp_path / "out", CONTENT, replace=False)
        files.write_file(tmp_path / "file", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "rename", "replace"])
def test_a_failure_leaves_the_old_and_nothing_else(call, tmp_path, monkeypatch):
    files.write_directory(tmp_path / "out", CONTENT, replace=False)
    files.write_file(tmp_path / "file", b"old")

    def fail(*args):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files.os, call, fail)
    if call != "replace":
        with pytest.raises(OSError):
            files.write_directory(tmp_path / "out", {"c.txt": b"c"}, replace=True)
    if call != "rename":
        with pytest.raises(OSError):
            files.write_file(tmp_path / "file", b"new")
    assert _names(tmp_path) == ["file", "out"]
    assert _names(tmp_path / "out") == ["a.txt", "b.txt"] and (tmp_path / "file").read_bytes() == b"old"


def test_a_reader_never_finds_the_directory_missing_or_mixed(tmp_path):
    target, done, seen = tmp_path / "out", threading.Event(), set()
    files.write_directory(target, {"n": b"0", "m": b"0"}, replace=False)
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
        files.write_directory(target, {"n": b"%d" % number, "m": b"%d" % number}, replace=True)
    done.set()
    reader.join()
    assert not problems
    assert all(n == m for n, m in seen) and len(seen) > 1
