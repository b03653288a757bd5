"""Requirements of the set-up on the machine: an interpreter, pip, a C++ compiler, Python's headers.

If a requirement is in a separate package of Debian or Ubuntu that is not installed, the package is fetched and
unpacked below `.build`, without administrator rights; if this also fails, one line lists the packages to install.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

OLDEST, NEWEST = (3, 10), (3, 14)  # Python versions of the ROS 2 wheels


class SetupError(Exception):
    """A missing requirement and its remedy, in one line."""


def use_supported_python() -> None:
    """Continue in another interpreter if this interpreter is older or newer than the wheels."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        other = shutil.which(f"python3.{minor}")
        if other and subprocess.run([other, "-c", ""], capture_output=True, check=False).returncode == 0:
            os.execv(other, [other, *sys.argv])
    found = ".".join(map(str, sys.version_info[:3]))
    raise SetupError(
        f"found Python {found}, the ROS 2 wheels need 3.{OLDEST[1]} to 3.{NEWEST[1]}: install one of them and run "
        "make PYTHON=/path/to/python3"
    )


def check_platform() -> None:
    """Refuse machines that the wheels do not support."""
    machine, (libc, version) = platform.machine(), platform.libc_ver()
    if sys.platform != "linux" or machine != "x86_64":
        raise SetupError(
            f"found {sys.platform} on {machine}, the ROS 2 wheels need Linux on x86_64: "
            "build the package with colcon in a ROS 2 installation instead (see README.md)"
        )
    if libc == "glibc" and tuple(map(int, version.split("."))) < (2, 28):
        raise SetupError(f"found glibc {version}, the ROS 2 wheels need 2.28: use Debian 10, Ubuntu 20.04 or newer")


def succeeds(command: list, cwd: Path | None = None, env: dict[str, str] | None = None) -> bool:
    """Return True if a command exists and ends with status 0; its output is dropped."""
    try:
        return subprocess.run(
            list(map(str, command)), capture_output=True, stdin=subprocess.DEVNULL, cwd=cwd, env=env, check=False
        ).returncode == 0
    except OSError:
        return False


def unpack_debian(package: str, folder: Path) -> Path:
    """Download a Debian package and unpack it below `folder`, once; if this fails, the returned path does not exist."""
    target, partial, lists = folder / package, folder / f"{package}.partial", folder / "lists"
    if target.is_dir() or not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return target
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    # Without package lists, as in containers, fetch private lists, which any user may do.
    own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={lists}"]
    download = ["download", package]
    if not succeeds(["apt-get", *download], cwd=partial):
        succeeds(["apt-get", *own, "update"], cwd=partial)
        succeeds(["apt-get", *own, *download], cwd=partial)
    archives = list(partial.glob("*.deb"))
    if archives and all(succeeds(["dpkg-deb", "-x", archive, partial]) for archive in archives):
        partial.rename(target)
    return target


def create_venv(path: Path, env: dict[str, str], scratch: Path) -> None:
    """Create a virtual environment with pip, also if `ensurepip` is in a separate package that is not installed.

    Raises SetupError if this is impossible.
    """
    if succeeds([sys.executable, "-m", "venv", path], env=env):
        return
    shutil.rmtree(path, ignore_errors=True)
    python = path / "bin" / "python"
    if succeeds([sys.executable, "-m", "venv", "--without-pip", path], env=env):
        if succeeds([sys.executable, "-m", "pip", "--python", python, "install", "pip"], env=env):
            return
        for folder in (Path("/usr"), unpack_debian("python3-pip-whl", scratch) / "usr"):
            for wheel in sorted(folder.glob("share/python-wheels/pip-*.whl")):
                if succeeds([python, wheel / "pip", "install", "--no-index", wheel], env=env):
                    return
        shutil.rmtree(path, ignore_errors=True)
    if succeeds([sys.executable, "-m", "virtualenv", path], env=env):
        return
    raise SetupError(
        f"{sys.executable} cannot create a virtual environment with pip: sudo apt install python3-venv (or your "
        "system's equivalent) and run the command again"
    )


def find_compiler() -> str:
    """Return the name of the C++ compiler that CMake will use. Raises SetupError without a compiler."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        found = name and shutil.which(name.split()[0])
        if found:
            return found
    raise SetupError("found no C++ compiler: sudo apt install g++ (or your system's equivalent) and run again")


def find_headers(scratch: Path) -> Path:
    """Return the folder that holds Python.h for this interpreter. Raises SetupError without Python.h."""
    include = Path(sysconfig.get_paths()["include"])
    if (include / "Python.h").is_file():
        return include
    version = f"python3.{sys.version_info[1]}"
    unpacked = unpack_debian(f"lib{version}-dev", scratch) / "usr" / "include" / version
    if (unpacked / "Python.h").is_file():
        return unpacked
    raise SetupError(
        f"found no Python.h in {include}: sudo apt install {version}-dev (or your system's equivalent) and run again"
    )
