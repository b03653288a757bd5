"""control_msgs for the tests of action interfaces: the installed one, or a stand-in that is built once and kept.

No package index has control_msgs. What is built has the fields of the real FollowJointTrajectory that arms use; it is
never installed, only put on the search paths of the processes that need it.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import SUPPORT

SOURCE = SUPPORT / "nodes" / "control_msgs"


def control_messages_environment(cache: Path) -> dict[str, str]:
    """Variables for processes that import control_msgs; empty where it is installed.

    Skips the test where it is neither installed nor can be built.
    """
    if importlib.util.find_spec("control_msgs") is not None:
        return {}
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("control_msgs is not installed, and cmake and ninja are needed to build a stand-in")
    prefix = _built(cache)
    packages = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    return {
        "AMENT_PREFIX_PATH": _joined(prefix, "AMENT_PREFIX_PATH"),
        "LD_LIBRARY_PATH": _joined(prefix / "lib", "LD_LIBRARY_PATH"),
        "PYTHONPATH": _joined(packages, "PYTHONPATH"),
    }


def _joined(first: Path, variable: str) -> str:
    return os.pathsep.join(filter(None, [str(first), os.environ.get(variable)]))


def _built(cache: Path) -> Path:
    """Folder of the stand-in, built for this interpreter unless it is there."""
    sources = sorted(path for path in SOURCE.rglob("*") if path.is_file())
    key = hashlib.sha256(sys.prefix.encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = cache / key
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _build(folder)
            (folder / "complete").touch()
    return folder / "install"


def _build(folder: Path) -> None:
    build = folder / "build"
    configure = [
        "cmake", "-S", SOURCE, "-B", build, "-GNinja", f"-DCMAKE_INSTALL_PREFIX={folder / 'install'}",
        "-DBUILD_TESTING=OFF", f"-DPython3_EXECUTABLE={sys.executable}", "-DPython3_FIND_VIRTUALENV=ONLY",
        *_headers(), "--no-warn-unused-cli",
    ]  # fmt: skip
    for command in (configure, ["cmake", "--build", build, "--target", "install"]):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def _headers() -> list[str]:
    """Where the environment's set-up found Python.h, if it did."""
    unpacked = Path(sys.prefix).parent / "debian"
    found = sorted(unpacked.glob("*-dev/usr/include/python3.*/Python.h"))
    return [f"-DPython3_INCLUDE_DIR={found[0].parent}"] if found else []
