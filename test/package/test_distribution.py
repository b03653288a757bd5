"""Source distribution and wheel hold the library and nothing else; files of a release say the same."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from support.paths import ROOT

import inertid_ros

LIBRARY = ROOT / "inertid_ros"
GENERATED = ("msg", "action")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with both, the wheel made from the source distribution."""
    pytest.importorskip("setuptools")
    output = tmp_path_factory.mktemp("dist")
    command = [sys.executable, str(ROOT / "scripts" / "check_distribution.py"), str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return output


def files_of_the_library() -> set[str]:
    found = (path.relative_to(ROOT) for path in LIBRARY.rglob("*") if path.is_file())
    kept = (path for path in found if path.parts[1] not in GENERATED and "__pycache__" not in path.parts)
    return {str(path) for path in kept}


def test_the_wheel_holds_every_file_of_the_library(built: Path) -> None:
    wheel = zipfile.ZipFile(next(built.glob("*.whl")))
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert inside == files_of_the_library()
    about = {Path(name).name: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/" in name}
    assert f"Version: {inertid_ros.__version__}" in about["METADATA"] and "LICENSE" in about
    assert "inertid = inertid_ros.cli.main:main" in about["entry_points.txt"]


def test_the_source_distribution_can_be_read_and_built(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", *files_of_the_library()} <= names


def test_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == inertid_ros.__version__
    assert citation["license"] == "Apache-2.0" and citation["title"] == "inertid_ros"
    assert {"cff-version", "message", "authors"} <= set(citation)


def test_containers_install_what_the_package_names() -> None:
    """They take the dependencies from package.xml by rosdep, and name nothing again."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^FROM ros:jazzy", text, re.M)
    assert "rosdep install --from-paths" in text and "colcon build" in text
    devcontainer = yaml.safe_load((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert (ROOT / ".devcontainer" / devcontainer["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
