"""Build the source distribution and from it the wheel; with --install, also run it in a new environment.

    python scripts/check_distribution.py OUTPUT              build both into OUTPUT
    python scripts/check_distribution.py OUTPUT --install    also install the wheel with its dependencies, and run it

The environment contains only the wheel and its declared dependencies, so that an undeclared dependency causes an error.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("inertid_ros", "pyproject.toml", "setup.py", "README.md", "LICENSE")  # sources of the distribution
BUILD = "import sys; from setuptools import build_meta; print(build_meta.{}(sys.argv[1]))"
COMMANDS = (
    "python -m inertid_ros.simulation.examples arm",
    "inertid init robot.urdf",
    "inertid identify run1_bag --urdf robot.urdf --config robot.yaml --validate run2_bag --output result",
    "inertid report result",
)


def build(output: Path) -> tuple[Path, Path]:
    """Build source distribution and wheel from a copy of the sources, so that the sources stay clean."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "sources"
        copy.mkdir()
        for name in SOURCES:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "msg", "action"))
            else:
                shutil.copyfile(source, copy / name)
        sdist = _built(copy, "build_sdist", output)
        with tarfile.open(sdist) as archive:
            if hasattr(tarfile, "data_filter"):  # Debian 12 has Python 3.11.2, without filters
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(scratch)
        wheel = _built(Path(scratch) / sdist.name.removesuffix(".tar.gz"), "build_wheel", output)
    return sdist, wheel


def _built(sources: Path, hook: str, output: Path) -> Path:
    command = [sys.executable, "-c", BUILD.format(hook), str(output.resolve())]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{hook}: {done.stderr.strip().splitlines()[-1]}")
    return output / done.stdout.strip().splitlines()[-1]


def install_and_run(wheel: Path) -> None:
    """Install a wheel into a new environment, and run the first commands of a new user."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        binaries = folder / "venv" / "bin"
        hidden = ("PYTHONPATH", "PYTHONHOME", "AMENT_PREFIX_PATH", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment["PATH"] = f"{binaries}{os.pathsep}{environment['PATH']}"
        subprocess.run([binaries / "pip", "install", "-q", str(wheel)], check=True, env=environment)
        for command in COMMANDS:
            subprocess.run(command, shell=True, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            print(f"ran: {command}")


def main() -> int:
    """Build, and install on request; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder of the two files")
    parser.add_argument("--install", action="store_true", help="install the wheel and run it; needs a package index")
    arguments = parser.parse_args()
    sdist, wheel = build(arguments.output)
    print(f"built: {sdist.name}, {wheel.name}")
    if arguments.install:
        install_and_run(wheel.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
