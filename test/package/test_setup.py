"""The set-up: what it remembers, what it rewrites, and what it says when something is missing."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.paths import ROOT

SCRIPTS = ROOT / "scripts"
sys.path.append(str(SCRIPTS))

import bootstrap  # noqa: E402
import host  # noqa: E402
import installer  # noqa: E402
import patch_wheels  # noqa: E402
import stamps  # noqa: E402


def test_build_machine_paths_are_rewritten():
    before = (
        'INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include/a;/opt/python/cp311-cp311/include/python3.11;'
        '/opt/python/cp311-cp311/lib/python3.11/site-packages/numpy/_core/include"'
    )
    after = patch_wheels.patch(before, "/usr/include/python3.12", r"/venv\1/numpy")
    assert after == (
        'INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include/a;/usr/include/python3.12;' + r'/venv\1/numpy"'
    )
    assert patch_wheels.patch(after, "/other", "/other") == after


def test_no_path_of_a_build_machine_is_left_in_this_environment():
    left = [
        path
        for path in Path(sys.prefix, "share").glob("*_msgs/cmake/*.cmake")
        if "/opt/python/cp" in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert not left


def test_a_key_depends_on_names_and_contents(tmp_path: Path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("x")
    second.write_text("x")
    key = stamps.digest("step", first)
    assert stamps.digest("step", first) == key
    assert stamps.digest("other", first) != key
    assert stamps.digest("step", second) != key
    first.write_text("y")
    assert stamps.digest("step", first) != key


def test_a_stamp_holds_for_its_key_only(tmp_path: Path):
    memory = stamps.Stamps(tmp_path / "stamps")
    assert not memory.fresh("build", "key")
    memory.write("build", "key")
    assert memory.fresh("build", "key")
    assert not memory.fresh("build", "another")
    assert [path.name for path in memory.folder.iterdir()] == ["build"]


def test_caches_are_no_sources(tmp_path: Path):
    for name in ("package/module.py", "package/__pycache__/module.cpython-311.pyc", "single.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = stamps.files_below(tmp_path, ("package", "single.txt", "absent"))
    assert [str(path.relative_to(tmp_path)) for path in found] == ["package/module.py", "single.txt"]


def test_two_setups_take_turns(tmp_path: Path):
    order = []

    def second() -> None:
        with stamps.locked(tmp_path / "lock"):
            order.append("second")

    with stamps.locked(tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(timeout=0.2)
        order.append("first")
    thread.join(timeout=5)
    assert order == ["first", "second"]


def test_distribution_is_asked_for_or_the_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    assert bootstrap.choose_distro("") == "jazzy"
    assert bootstrap.choose_distro("kilted") == "kilted"
    with pytest.raises(host.SetupError, match="found ROS_DISTRO=foxy: set it to jazzy or kilted"):
        bootstrap.choose_distro("foxy")
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/opt/ros/humble")
    assert bootstrap.choose_distro("humble") == "jazzy"


def test_nothing_of_a_sourced_installation_enters_the_build(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/opt/ros/humble")
    monkeypatch.setenv("PYTHONPATH", "/opt/ros/humble/lib/python3.10/site-packages")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/ros/humble/lib")
    monkeypatch.setenv("PATH", f"/opt/ros/humble/bin{os.pathsep}/usr/bin")
    environment = bootstrap.Setup("jazzy").environment()
    ours = {name: value for name, value in environment.items() if "PATH" in name and name in os.environ}
    assert not [name for name, value in ours.items() if "/opt/ros/humble" in value]
    assert "PYTHONPATH" not in environment
    assert "/usr/bin" in environment["PATH"].split(os.pathsep)


@pytest.mark.parametrize(
    ("check", "remedy"),
    [
        (host.find_compiler, "no C[+]+ compiler: sudo apt install g[+]+"),
        (lambda: host.find_headers(Path("/nonexistent")), "no Python.h in .*: sudo apt install python3.*-dev"),
    ],
)
def test_what_is_missing_is_one_line_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, check, remedy):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(host.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(host.SetupError, match=remedy) as failure:
        check()
    assert "\n" not in str(failure.value)


def test_python_without_venv_is_one_line_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(host, "succeeds", lambda *_arguments, **_keywords: False)
    with pytest.raises(host.SetupError, match="sudo apt install python3-venv"):
        host.create_venv(tmp_path / "venv", {}, tmp_path)


def test_an_old_interpreter_names_the_versions_it_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(host.sys, "version_info", (3, 8, 10))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(host.SetupError, match=r"found Python 3.8.10, the ROS 2 wheels need 3.10 to 3.14"):
        host.use_supported_python()


def test_the_command_line_reports_errors_in_one_line():
    environment = {name: value for name, value in os.environ.items() if name != "AMENT_PREFIX_PATH"}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "bootstrap.py"), "--distro", "foxy"],
        capture_output=True, text=True, check=False, timeout=30, env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "error: found ROS_DISTRO=foxy: set it to jazzy or kilted, or unset it\n"
    assert done.stdout == ""


def test_uv_takes_the_settings_of_pip_or_leaves_the_work_to_it():
    said = (
        "global.index-url='https://index.example/simple'\n:env:.find-links='/wheels /more'\n"
        "global.disable-pip-version-check='1'\nfreeze.timeout='3'\ninstall.default-timeout='180'\n"
    )
    assert installer.uv_variables(said) == {
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_HTTP_TIMEOUT": "180",
    }
    assert installer.uv_variables("") == {}
    assert installer.uv_variables("global.no-index='true'\n") is None
