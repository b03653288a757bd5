#!/usr/bin/env python3
"""Set up a development environment: virtual environment, ROS 2 from wheels, interface build, env.sh.

Needs Python 3.10 or newer and a C++ compiler, but not ROS. Everything goes to `.build/<distro>`. Each step leaves a
stamp that holds the hash of its inputs, so a second run only compares hashes. A sourced ROS 2 installation is not
used.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from host import (  # noqa: E402 - found by the line above, also in Python's safe-path mode
    SetupError,
    check_platform,
    create_venv,
    find_compiler,
    find_headers,
    use_supported_python,
)
from installer import uv_command  # noqa: E402
from stamps import Stamps, digest, files_below, locked, replace, say  # noqa: E402

DISTROS = ("jazzy", "kilted")
PACKAGE = "inertid_ros"
# CMake links these files one by one: a new name needs a build, but changed content does not.
LINKED = ("inertid_ros", "include", "launch", "config", "security", "viewers", "examples", "resource")
# A change of these files needs a build; the example is installed as a copy under another name.
COMPILED = (
    "msg", "action", "examples/gravity_compensation.py", "scripts/executable.py.in", "scripts/node.py.in",
    "CMakeLists.txt", "package.xml",
)  # fmt: skip

# Variables of a sourced ROS 2, of conda or of a user's pip settings that would change the new environment.
FOREIGN = (
    "AMENT_PREFIX_PATH", "AMENT_CURRENT_PREFIX", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH", "PYTHONPATH", "PYTHONHOME",
    "PYTHONSAFEPATH", "LD_LIBRARY_PATH", "ROS_DISTRO", "ROS_VERSION", "ROS_PYTHON_VERSION", "VIRTUAL_ENV",
    "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
)  # fmt: skip


class Setup:
    """Paths and steps of the set-up for one ROS distribution."""

    def __init__(self, distro: str) -> None:
        self.distro = distro
        self.base = ROOT / ".build" / distro
        self.venv = self.base / "venv"
        self.python = self.venv / "bin" / "python"
        self.version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.install = self.base / "install" / PACKAGE
        self.debian = self.base / "debian"  # unpacked packages that the system lacks
        self.constraints = ROOT / "requirements" / "constraints.txt"
        self.requirements = [ROOT / "requirements" / f"{name}.txt" for name in (distro, "common", "dev")]
        self.stamps = Stamps(self.base / "stamps")
        self.installing = self.base / "installing"  # exists while pip writes

    def run(self) -> None:
        key = self.make_venv()
        key = self.install_packages(key)
        self.build(key)
        self.write_environment()

    def environment(self) -> dict[str, str]:
        """The environment of the build; the virtual environment is its only source of Python and ROS."""
        env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        libraries = [self.venv / "lib", *sorted(self.venv.glob(f"lib/{self.version}/site-packages/ros_*.libs"))]
        headers = self.debian / f"lib{self.version}-dev" / "usr" / "include"
        if headers.is_dir():
            env["CPATH"] = os.pathsep.join(filter(None, [str(headers), env.get("CPATH")]))
        foreign = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
        # CMake also searches next to the folders of PATH.
        path = [p for p in env.get("PATH", os.defpath).split(os.pathsep) if not set(foreign) & {Path(p).parent}]
        env.update(
            PATH=os.pathsep.join([str(self.venv / "bin"), *path]),
            AMENT_PREFIX_PATH=str(self.venv),
            CMAKE_PREFIX_PATH=str(self.venv),
            LD_LIBRARY_PATH=os.pathsep.join(map(str, libraries)),
            COLCON_HOME=str(self.base / "colcon"),
            # Without this, colcon runs one job while the load is above the number of cores, as after the installation.
            MAKEFLAGS=f"-j{os.cpu_count() or 1}",
            PIP_DISABLE_PIP_VERSION_CHECK="1",
            PIP_NO_INPUT="1",
            PIP_ROOT_USER_ACTION="ignore",
            # Without this, the wheels start every Python twice to set LD_LIBRARY_PATH, which is already set above.
            _ROS_WHEELS_BOOTSTRAP_COMPLETE="1",
        )
        return env

    def log(self, step: str) -> Path:
        return self.base / f"{step}.log"

    def status(self, step: str, command: list, env: dict[str, str]) -> int:
        """Run a command with its output in a log, and return the exit status."""
        with open(self.log(step), "w", encoding="utf-8") as out:
            return subprocess.run(
                list(map(str, command)),
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=self.base, check=False,
            ).returncode  # fmt: skip

    def call(self, step: str, command: list, remedy: str) -> None:
        """Run a command with its output in a log, and show the end of the log if the command fails."""
        status = self.status(step, command, self.environment())
        if status:
            output = self.log(step).read_text(encoding="utf-8", errors="replace")
            print(*output.splitlines()[-25:], sep="\n", file=sys.stderr)
            raise SetupError(f"{step} ended with status {status} (whole output in {self.log(step)}): {remedy}")

    def make_venv(self) -> str:
        """Create the virtual environment, or keep a working one; after an interrupted installation, start over."""
        key = digest(sys.version, os.path.realpath(sys.executable), str(self.venv))
        if self.installing.exists():
            say("the last set-up was interrupted: starting with a new virtual environment")
            shutil.rmtree(self.venv, ignore_errors=True)
        if not (self.stamps.fresh("venv", key) and self.python.exists()) and not self.venv_works():
            say(f"creating a virtual environment of {self.version}")
            shutil.rmtree(self.venv, ignore_errors=True)
            create_venv(self.venv, self.environment(), self.debian)
        self.installing.unlink(missing_ok=True)
        self.stamps.write("venv", key)
        return key

    def venv_works(self) -> bool:
        """Return True if there is an environment, created at this path, with this Python version and pip."""
        probe = f"import pip, sys; sys.exit('python%d.%d' % sys.version_info[:2] != {self.version!r})"
        with contextlib.suppress(OSError):
            made_here = str(self.venv) in (self.venv / "bin" / "activate").read_text()
            done = subprocess.run([self.python, "-c", probe], env=self.environment(), capture_output=True, check=False)
            return made_here and done.returncode == 0
        return False

    def install_packages(self, venv_key: str) -> str:
        key = digest(venv_key, self.constraints, *self.requirements, ROOT / "scripts" / "patch_wheels.py")
        if self.stamps.fresh("packages", key):
            return key
        find_compiler()  # fails now instead of after the downloads
        headers = find_headers(self.debian)
        say("installing packages (a minute or two)")
        wanted = ["-c", self.constraints, *(word for file in self.requirements for word in ("-r", file))]
        self.installing.touch()
        try:
            if not self.install_by_uv(wanted):
                command = [self.python, "-m", "pip", "install", "--progress-bar=off", "--no-compile", *wanted]
                remedy = "check the connection to the package index and the free space, then run again"
                self.call("pip", command, remedy)
        except SetupError:
            self.installing.unlink()  # after an error pip removes its files; only a killed pip does not
            raise
        patch = [self.python, ROOT / "scripts" / "patch_wheels.py", headers]
        self.call("patch", patch, f"remove {self.base} and run again")
        self.installing.unlink()
        self.stamps.write("packages", key)
        return key

    def install_by_uv(self, wanted: list) -> bool:
        """Install with uv if it is available. After a failure, pip installs and reports errors."""
        found = uv_command(self.python, self.constraints, self.environment())
        if found is None:
            return False
        command, env = found
        if self.status("uv", [*command, *wanted], env) == 0:
            return True
        say(f"uv did not install them (see {self.log('uv')}): trying pip")
        return False

    def build(self, packages_key: str) -> None:
        """Generate and compile the interfaces; link the library's files into the installation.

        CMake builds from a folder of links: it refuses exported include directories below the source folder, and the
        virtual environment in `.build` lies below the checkout.
        """
        names = [str(f) for f in files_below(ROOT, LINKED)]
        key = digest(packages_key, *files_below(ROOT, COMPILED), *names)
        if self.stamps.fresh("build", key) and self.install.is_dir():
            return
        find_compiler()
        headers = find_headers(self.debian)
        source, build, install = (self.base / name for name in ("src", "build", "install"))
        if not self.stamps.fresh("cmake", packages_key):  # CMake's cache would keep the old interpreter and paths
            shutil.rmtree(build, ignore_errors=True)
            shutil.rmtree(install, ignore_errors=True)
        shutil.rmtree(source, ignore_errors=True)
        (source / PACKAGE).mkdir(parents=True)
        for name in ("package.xml", "CMakeLists.txt", "msg", "action", "scripts", *LINKED):
            (source / PACKAGE / name).symlink_to(os.path.relpath(ROOT / name, source / PACKAGE))
        say("building the interfaces" if not install.is_dir() else "updating the build")
        command = [
            self.python, "-m", "colcon", "--log-base", self.base / "log", "build", "--base-paths", source,
            "--build-base", build, "--install-base", install, "--symlink-install", "--cmake-force-configure",
            "--event-handlers", "console_direct+", "--cmake-args", "-GNinja", "-DBUILD_TESTING=OFF",
            f"-DPython3_EXECUTABLE={self.python}", "-DPython3_FIND_VIRTUALENV=ONLY",
            f"-DPython3_INCLUDE_DIR={headers}", "--no-warn-unused-cli",
        ]  # fmt: skip
        self.call("build", command, "correct the errors above; after a change of compiler remove .build")
        for link in install.rglob("*"):
            if link.is_symlink() and not link.exists():  # its file was removed or renamed
                link.unlink()
        self.stamps.write("cmake", packages_key)
        self.stamps.write("build", key)

    def write_environment(self) -> None:
        """Write env.sh, which replaces the search paths, so that a sourced ROS 2 is not found."""
        libraries = self.environment()["LD_LIBRARY_PATH"]
        values = {
            "VIRTUAL_ENV": self.venv,
            "AMENT_PREFIX_PATH": f"{self.install}:{self.venv}",
            "CMAKE_PREFIX_PATH": f"{self.install}:{self.venv}",
            "LD_LIBRARY_PATH": f"{self.install / 'lib'}:{libraries}",
            "PYTHONPATH": self.install / "lib" / self.version / "site-packages",
            "PYTHONPYCACHEPREFIX": self.base / "bytecode",  # without it a node starts in 2 s, not 0.7 s
            "PYTHONSAFEPATH": "1",  # the source folder must not hide the installed package, which has the messages
            "ROS_DISTRO": self.distro,
            "ROS_VERSION": "2",
            "ROS_PYTHON_VERSION": "3",
            "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp",
            "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1",
        }
        lines = ["# Source this: the virtual environment, ROS 2 from wheels, the built interfaces and the package."]
        lines += [f"export {name}={shlex.quote(str(value))}" for name, value in values.items()]
        lines += [f'export PATH={shlex.quote(str(self.install / "lib" / PACKAGE))}'
                  f':{shlex.quote(str(self.venv / "bin"))}:"$PATH"']  # fmt: skip
        lines += ["unset PYTHONDONTWRITEBYTECODE PYTHONHOME COLCON_PREFIX_PATH AMENT_CURRENT_PREFIX", ""]
        replace(self.base / "env.sh", "\n".join(lines))


def choose_distro(asked: str) -> str:
    """Return the requested distribution; the default without a request, or if an unsupported ROS 2 is sourced."""
    if asked in DISTROS:
        return asked
    if asked and not os.environ.get("AMENT_PREFIX_PATH"):
        raise SetupError(f"found ROS_DISTRO={asked}: set it to {' or '.join(DISTROS)}, or unset it")
    if asked:
        say(f"ROS 2 {asked} is sourced, but has no wheels: using {DISTROS[0]}")
    return DISTROS[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--distro", default=os.environ.get("ROS_DISTRO", ""), help="jazzy (default) or kilted")
    parser.add_argument("--print-environment", action="store_true", help="print the path of env.sh on stdout")
    arguments = parser.parse_args()
    start = time.monotonic()
    try:
        use_supported_python()
        check_platform()
        setup = Setup(choose_distro(arguments.distro))
        with locked(setup.base / "lock"):
            setup.run()
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; the next run continues from here", file=sys.stderr)
        return 130
    if time.monotonic() - start > 5:
        say(f"done in {time.monotonic() - start:.0f} s")
    if arguments.print_environment:
        print(setup.base / "env.sh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
