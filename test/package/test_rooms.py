"""Folders of the package: imports run in the stated direction, and no folder grows beyond what one can look through."""

import importlib.util
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = 15  # modules that a folder may hold
MODULES, LOADED, IMPORT_SHARE = 250, 150, 0.09  # of the package; by `inertid identify`; of the lines of code
IDENTIFY = """
import sys
from inertid_ros.cli.main import main
main(["identify", "run1_bag", "--urdf", "robot.urdf", "--validate", "run2_bag", "--output", "result", "--quiet"])
files = [str(module.__file__) for name, module in sys.modules.items() if name.startswith("inertid_ros.")]
print(*(file.rpartition("inertid_ros/")[2] for file in files if not file.endswith("__init__.py")))
"""


def load():
    spec = importlib.util.spec_from_file_location("room_graph", ROOT / "scripts" / "room_graph.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["room_graph"] = module
    spec.loader.exec_module(module)
    return module


room_graph = load()


@pytest.fixture(scope="module")
def package():
    return room_graph.Package(ROOT)


def test_imports_run_in_the_stated_direction(package):
    against = [
        f"{entry.source}:{entry.line} imports {entry.target}"
        for entry in package.imports
        if not room_graph.allowed(entry.source, entry.target)
    ]
    assert not against, "\n".join(against)


def test_every_folder_has_a_place(package):
    rooms = {folder.split("/")[0] for folder in package.folders}
    assert rooms <= set(room_graph.ranks(room_graph.ORDER)), "give new folders a place in scripts/room_graph.py"
    for room, order in room_graph.ORDER_WITHIN.items():
        below = [folder.split("/")[1] for folder in package.folders if folder.startswith(f"{room}/")]
        assert set(below) <= set(room_graph.ranks(order)), f"give new folders of {room} a place in its order"


def test_no_cycle_between_folders(package):
    graph = defaultdict(set)
    for importing, imported in package.arrows:
        graph[importing].add(imported)
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_folders_are_of_a_size_to_look_through(package):
    """Every command has a module, and finding it takes no looking through."""
    assert {folder: count for folder, count in package.folders.items() if count > FILES and folder != "cli"} == {}


def test_the_top_level_holds_folders_only(package):
    assert package.folders.get("", 0) == 0


def test_the_package_can_be_read(package):
    """No more modules, import lines and large functions than a reader can take; constants have names of their own."""
    imports = sum(room_graph.lines_of(node) for _, node in package.nodes(*room_graph.IMPORTS))
    assert len(package.modules) <= MODULES
    assert imports <= IMPORT_SHARE * sum(map(package.code_lines, package.files))
    assert package.large_functions == ["cli/main.py::command_parser"]
    assert [name for name, count in package.constants.items() if count > 2] == []


def test_identify_loads_what_is_counted(package, tmp_path):
    """The count of the script is that of a run."""
    for command in (["-m", "inertid_ros.simulation.examples", "arm", "--seconds", "5"], ["-c", IDENTIFY]):
        run = subprocess.run([sys.executable, *command], cwd=tmp_path, check=True, capture_output=True, text=True)
    loaded = set(run.stdout.splitlines()[-1].split())
    assert loaded == package.loaded(*room_graph.IDENTIFY)
    assert len(loaded) <= LOADED


def test_an_arrow_back_up_is_found(tmp_path):
    """Also one within a function, a relative one, and one in a folder below."""
    files = {
        "core/errors.py": "def late():\n    import inertid_ros.robot.model\n",
        "robot/model.py": "from ..core import errors\n",
        "robot/urdf/parsing.py": "from inertid_ros.robot.model import load_model\n",
        "ros/qos.py": "from inertid_ros.cli import main\n",
        "cli/main.py": "from inertid_ros import __version__\n",
    }
    for name, content in files.items():
        path = tmp_path / "inertid_ros" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    found = room_graph.Package(tmp_path)
    against = {(e.source, e.target) for e in found.imports if not room_graph.allowed(e.source, e.target)}
    assert against == {
        ("core/errors.py", "robot/model.py"),
        ("robot/urdf/parsing.py", "robot/model.py"),
        ("ros/qos.py", "cli/main.py"),
    }
    assert ("robot/model.py", "core/errors.py") in {(e.source, e.target) for e in found.imports}
