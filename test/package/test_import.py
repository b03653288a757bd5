"""The package as a whole: numerics without ROS, one version everywhere, manifests that name what the code imports."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from support.paths import ROOT
from support.sources import IN_ONE_PROCESS, nodes, tree

import inertid_ros

pytestmark = IN_ONE_PROCESS

LIBRARY = ROOT / "inertid_ros"
ROS_LAYERS = {"ros", "nodes"}
# Names as Python imports them and as package.xml or pyproject.toml lists them, where the two differ.
ROSDEP_KEYS = {"yaml": "python3-yaml", "tf_transformations": "tf_transformations", "pinocchio": "pinocchio"}
DISTRIBUTIONS = {"pinocchio": "pin", "yaml": "PyYAML", "jinja2": "Jinja2"}
# Chosen by an option, imported where they are used, and explained in one line where they are absent.
OPTIONAL = {"cvxpy", "clarabel", "mujoco", "example_robot_data", "rosbags", "transforms3d"}
OPTIONAL |= {"argcomplete", "ezc3d", "pyarrow", "threadpoolctl", "xacro"}
# Used by the numerics where ROS 2 provides it, imported where it is used: in package.xml, but not in pyproject.toml.
OF_ROS = {"rclpy", "rosbag2_py"}
# LZ4 and Zstandard come with rosbags, Coal with Pinocchio.
INDIRECT = {"lz4", "compression", "backports", "coal"}
# In package.xml without being imported by name.
NOT_IMPORTED = {
    "python3-cvxpy-pip": "brings Clarabel and OSQP, which options choose",
    "ros2launch": "the command that starts the launch files",
    "rosbag2_storage_mcap": "plugin of rosbag2_py",
    "rosbag2_storage_sqlite3": "plugin of rosbag2_py",
    "rosidl_default_runtime": "runtime of the generated messages",
}

IMPORT_ALL = """
import importlib, importlib.abc, pkgutil, re, sys

BLOCKED = re.compile(
    r"(rclpy|rosbag2_.*|rcl_interfaces|ament_.*|launch(_.*)?|.*_msgs|.*_interfaces|std_srvs|tf2.*|tf_transf.*)$"
)

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if BLOCKED.match(name.split(".")[0]) or name in ("inertid_ros.msg", "inertid_ros.action"):
            raise ModuleNotFoundError(f"{name} is blocked by this test", name=name)

sys.meta_path.insert(0, Block())
import inertid_ros
names = [m.name for m in pkgutil.walk_packages(inertid_ros.__path__, "inertid_ros.", onerror=lambda name: None)]
numerics = [n for n in names if n.split(".")[1] not in ("ros", "nodes", "msg", "action") and not n.endswith("_c")]
for name in numerics:
    importlib.import_module(name)
print(len(numerics))
# A node or a command must not wait for what few of its tasks need: `import scipy` loads these where they are used.
slow = [f"scipy.{part}" for part in ("stats", "interpolate", "optimize", "signal")] + ["cvxpy", "matplotlib", "mujoco"]
assert not set(slow) & set(sys.modules), sorted(set(slow) & set(sys.modules))
"""


def imported(file: Path) -> dict[str, int]:
    """Top-level names of the foreign modules that a file imports, with the line."""
    found: dict[str, int] = {}
    for node in nodes(file):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0]: node.lineno for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found[node.module.split(".")[0]] = node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("optional_module", "optional_type"):
            found |= {name.value.split(".")[0]: node.lineno for name in node.args[:1] if isinstance(name, ast.Constant)}
    foreign = set(found) - set(sys.stdlib_module_names) - {"inertid_ros"}
    return {name: found[name] for name in foreign}


def library_imports(ros: bool) -> dict[str, str]:
    """Foreign modules of the numerics, or of the layers above them that use ROS, with a place of the import."""
    places = {}
    for file in sorted(LIBRARY.rglob("*.py")):
        path = file.relative_to(LIBRARY)
        if (path.parts[0] in ROS_LAYERS) == ros:
            places |= {name: f"{path}:{line}" for name, line in imported(file).items()}
    return places


def manifest_dependencies() -> set[str]:
    root = ElementTree.parse(ROOT / "package.xml").getroot()
    return {entry.text or "" for entry in root if entry.tag in ("depend", "exec_depend")}


def project_dependencies() -> set[str]:
    """Names in `dependencies = [...]` of pyproject.toml (Python 3.10 has no TOML reader)."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)\]", text, re.M | re.S)
    assert listed is not None
    return {re.split(r"[<>=]", name)[0] for name in re.findall(r'"(.*?)"', listed[1])}


def test_numerics_import_without_ros():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_public_names_exist_and_are_typed():
    found = nodes(LIBRARY / "__init__.py")
    imports = [node for node in found if isinstance(node, ast.ImportFrom) and node.module != "importlib"]
    typed = {
        alias.asname: f"{node.module}.{alias.name}".removeprefix("inertid_ros.")
        for node in imports
        if node.module != "typing"
        for alias in node.names
    }
    assert typed == inertid_ros._PUBLIC
    for name in inertid_ros._PUBLIC:
        assert callable(getattr(inertid_ros, name)) and name in dir(inertid_ros)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        inertid_ros.nothing  # noqa: B018


def test_the_package_is_imported_at_once():
    code = "import sys; before = set(sys.modules); import inertid_ros as ir; ir.__version__; dir(ir);"
    code += " print(sorted(name for name in set(sys.modules) - before if name != 'inertid_ros'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "yaml"} & set(ast.literal_eval(done.stdout))


def test_version_is_the_same_everywhere():
    manifest = ElementTree.parse(ROOT / "package.xml").getroot().findtext("version")
    assert inertid_ros.__version__ == manifest
    assert 'version = { attr = "inertid_ros.__version__" }' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_manifest_names_every_ros_package_that_is_imported():
    optional = OPTIONAL | INDIRECT
    keys = manifest_dependencies()
    missing = {
        name: place
        for name, place in (library_imports(ros=True) | library_imports(ros=False)).items()
        if name not in optional and not {name, f"python3-{name}", ROSDEP_KEYS.get(name, name)} & keys
    }
    assert not missing, f"package.xml does not name {missing}"


def test_manifest_names_nothing_that_is_not_used():
    names = set(library_imports(ros=True) | library_imports(ros=False)).union(
        *(imported(file) for folder in ("launch", "examples") for file in (ROOT / folder).glob("*.py"))
    )
    used = names | {f"python3-{name}" for name in names} | {ROSDEP_KEYS.get(name, name) for name in names}
    assert manifest_dependencies() - used == set(NOT_IMPORTED)


def test_keys_of_python_packages_are_known_to_rosdep():
    """Each was looked up in rosdep/python.yaml of ros/rosdistro (August 2026); look up what is added here."""
    known = ["attrs", "cvxpy-pip", "hypothesis", "jinja2", "jsonschema", "lxml", "matplotlib", "numpy", "pytest"]
    root = ElementTree.parse(ROOT / "package.xml").getroot()
    keys = {entry.text or "" for entry in root if entry.tag.endswith("depend")}
    assert {key for key in keys if key.startswith("python3-")} == {
        f"python3-{name}" for name in [*known, "pytest-timeout", "rich", "scipy", "yaml"]
    }


def test_rosdep_installs_without_the_optional_solvers():
    """They come by pip, which the system's Python refuses from Ubuntu 24.04 on."""
    root = ElementTree.parse(ROOT / "package.xml").getroot()
    by_pip = [entry.text for entry in root if entry.tag.endswith("depend") and "-pip" in (entry.text or "")]
    assert by_pip == ["python3-cvxpy-pip"]
    assert "-y --skip-keys python3-cvxpy-pip" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_maintainer_is_no_invented_person():
    maintainer = ElementTree.parse(ROOT / "package.xml").getroot().find("maintainer")
    assert maintainer is not None and maintainer.attrib["email"].endswith(".example")  # reserved by RFC 2606


def test_project_names_every_package_that_the_numerics_import():
    names = project_dependencies()
    missing = {
        name: place
        for name, place in library_imports(ros=False).items()
        if name not in OPTIONAL | OF_ROS | INDIRECT and DISTRIBUTIONS.get(name, name) not in names
    }
    assert not missing, f"the dependencies of pyproject.toml lack {missing}"


def test_the_readme_installs_what_its_first_launch_needs():
    """What the simulator imports and rosdep does not install."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before, launch, _ = readme.partition("ros2 launch inertid_ros simulate.launch.py")
    _, rosdep, steps = before.rpartition("rosdep install")
    assert launch and rosdep
    installed = set(re.findall(r"^pip install ([^#\n]*)", steps, re.M)[0].split())
    files = [file for folder in ("robot", "simulation") for file in sorted((LIBRARY / folder).rglob("*.py"))]
    needed = set().union(*(imported(file) for file in files))
    missing = {name for name in needed & OPTIONAL if not {name, f"python3-{name}"} & manifest_dependencies()}
    assert "mujoco" in missing and missing <= installed
    assert "example-robot-data" in installed  # its files are looked for, the module is not imported


def test_optional_packages_are_imported_where_they_are_used():
    """At module level they would be needed by everybody who imports the module."""
    early = []
    for file in sorted(LIBRARY.rglob("*.py")):
        optional = OPTIONAL if file.relative_to(LIBRARY).parts[0] in ROS_LAYERS else OPTIONAL | OF_ROS
        for node in tree(file).body:
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            early += [f"{file.name}: {m}" for m in modules if m.split(".")[0] in optional]
    assert not early
