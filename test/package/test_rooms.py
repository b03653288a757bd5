"""Folders of the package: imports run in the stated direction, and no folder grows beyond what one can look through."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = 15  # modules that a folder may hold


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
    order = room_graph.best_order(list(package.folders), package.arrows)
    assert room_graph.back_arrows(order, package.arrows) == []


def test_folders_are_of_a_size_to_look_through(package):
    """Every command has a module, and finding it takes no looking through."""
    assert {folder: count for folder, count in package.folders.items() if count > FILES and folder != "cli"} == {}


def test_the_top_level_holds_folders_only(package):
    assert package.folders.get("", 0) == 0


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
