"""Launch files: everything that they name exists. Read as text always, with the real launch where it is installed."""

import ast
import re
from pathlib import Path

import pytest
from support.package_parameters import declared_options
from support.paths import ROOT

from inertid_ros.nodes import MODULES

FILES = sorted((ROOT / "launch").glob("*.launch.py"))
SHARED = ast.parse((ROOT / "inertid_ros" / "nodes" / "launching.py").read_text(encoding="utf-8"))
# Parameters that rclpy itself declares in every node.
RCLPY = {"use_sim_time"}


def installed_executables() -> set[str]:
    """Names that CMakeLists.txt installs into lib/inertid_ros."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return installed_nodes() | set(re.findall(r"executables/(\w+)", text))


def installed_nodes() -> set[str]:
    """Names of nodes that CMakeLists.txt makes executables of."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return set(" ".join(re.findall(r"foreach\(name ([^)]*)\)", text)).split())


def read(file: Path) -> ast.Module:
    """A launch file with what it uses of the shared parts, as if that stood in it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    parts = [part for part in SHARED.body if isinstance(part, (ast.FunctionDef, ast.ClassDef))]
    values = [part for part in SHARED.body if isinstance(part, ast.Assign)]
    return ast.Module([*values, *tree.body, *(part for part in parts if calls(tree, part.name))], [])


def strings(tree: ast.AST) -> set[str]:
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    """Calls of functions or classes by name."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [call for call in found if isinstance(call.func, ast.Name) and call.func.id in names]


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Assignments at module level."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def arguments(tree: ast.Module) -> dict[str, str]:
    """Declared launch arguments with their descriptions."""
    table = constants(tree)["ARGUMENTS"]
    assert isinstance(table, ast.Tuple)
    rows = [constants(tree)[row.id] if isinstance(row, ast.Name) else row for row in table.elts]
    return {ast.literal_eval(row.elts[0]): ast.literal_eval(row.elts[2]) for row in rows if isinstance(row, ast.Tuple)}


def used_arguments(tree: ast.Module) -> set[str]:
    """Read arguments: LaunchConfiguration("x"), text("x"), flag("x"), given(context, x=str), and names passed on."""
    first = [call.args[0] for call in calls(tree, "LaunchConfiguration", "ParameterFile", "text", "flag")]
    used = {node.value for node in first if isinstance(node, ast.Constant)} | given_arguments(tree)
    passed_on = constants(tree).get("PASSED_ON")
    return used | (set(ast.literal_eval(passed_on)) if passed_on else set())


def given_arguments(tree: ast.AST) -> set[str]:
    """Arguments whose names are those of parameters."""
    return {str(keyword.arg) for call in calls(tree, "given") for keyword in call.keywords}


def included_arguments(tree: ast.Module) -> set[str]:
    """Arguments of the launch files of this package that are included; declared again, they have another default."""
    files = [name for name in strings(tree) if re.fullmatch(r"\w+\.launch\.py", name)]
    if not calls(tree, "IncludeLaunchDescription"):
        return set()
    return set().union(*(arguments(read(ROOT / "launch" / file)) for file in files))


def node_parameters(tree: ast.Module) -> list[tuple[str, set[str]]]:
    """Executable and names of the parameters given in the file itself, for each node."""
    found = []
    for call in calls(tree, "node"):
        dictionary = call.args[1]
        assert isinstance(call.args[0], ast.Constant) and isinstance(dictionary, ast.Dict)
        names = {ast.literal_eval(key) for key in dictionary.keys if key}
        found.append((str(call.args[0].value), names | given_arguments(dictionary)))
    for call in calls(tree, "Node"):
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        executable = keywords["executable"]
        if isinstance(executable, ast.Constant):
            keys = [key for part in ast.walk(keywords["parameters"]) if isinstance(part, ast.Dict) for key in part.keys]
            found.append((str(executable.value), {ast.literal_eval(key) for key in keys if key}))
    return found


@pytest.fixture(params=FILES, ids=lambda file: file.name.split(".")[0])
def file(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def tree(file: Path) -> ast.Module:
    return read(file)


def test_executables_are_those_of_the_package():
    assert installed_nodes() == set(MODULES)


def test_there_is_a_file_for_every_use():
    assert {"calibrate", "simulate", "replay"} <= {file.name.split(".")[0] for file in FILES}


def test_executables_are_installed_and_exist(tree: ast.Module):
    nodes = [name for name, _ in node_parameters(tree)]
    assert nodes or calls(tree, "IncludeLaunchDescription")
    for name in nodes:
        assert name in installed_executables()
        module = ROOT.joinpath(*MODULES[name].split(".")).with_suffix(".py")
        body = ast.parse(module.read_text(encoding="utf-8")).body
        assert "main" in [part.name for part in body if isinstance(part, ast.FunctionDef)], f"{module} has no main()"


def test_files_that_are_named_exist(tree: ast.Module):
    names = strings(tree)
    assert any(name.endswith(".yaml") for name in names)
    for name in names:
        if re.fullmatch(r"[\w.]+\.yaml", name):
            assert (ROOT / "config" / name).is_file(), name
        if re.fullmatch(r"[\w.]+\.launch\.py", name):
            assert (ROOT / "launch" / name).is_file(), name


def test_arguments_are_declared_described_and_used(tree: ast.Module):
    declared = arguments(tree)
    used = used_arguments(tree)
    assert used <= set(declared) <= used | included_arguments(tree)
    assert all(len(description) > 10 and not description.endswith(".") for description in declared.values())


def test_parameters_are_declared_by_their_node(tree: ast.Module):
    for name, keys in node_parameters(tree):
        assert keys <= set(declared_options(name)) | RCLPY, name


def test_replay_cannot_move_a_robot():
    tree = read(ROOT / "launch" / "replay.launch.py")
    assert {name for name, _ in node_parameters(tree)} <= {"recorder", "identifier", "replay"}
    assert not calls(tree, "IncludeLaunchDescription")


def test_included_files_take_the_arguments_that_are_passed():
    launches = {file.name.split(".")[0]: read(file) for file in FILES}
    passed_on = set(ast.literal_eval(constants(launches["simulate"])["PASSED_ON"]))
    assert passed_on | {"urdf"} <= set(arguments(launches["calibrate"]))
    assert {"defaults", "excitation"} <= strings(launches["stand"]) & set(arguments(launches["simulate"]))


def test_real_launch_reads_the_file(file: Path):
    """The same with the real launch: arguments as `ros2 launch --show-args` tells them, and one process a node."""
    launch = pytest.importorskip("launch", reason="launch is not installed (it is not on the package index)")
    pytest.importorskip("launch_ros", reason="launch_ros is not installed (it is not on the package index)")
    from launch.launch_description_sources import PythonLaunchDescriptionSource
    from launch_ros.actions import Node

    context = launch.LaunchContext()
    description = PythonLaunchDescriptionSource(str(file)).get_launch_description(context)
    declared = {argument.name: argument for argument in description.get_launch_arguments()}
    expected = arguments(read(file))
    for name, about in expected.items():
        assert declared[name].description.startswith(about)  # choices are told after it
    for argument in declared.values():
        defaults = argument.default_value
        assert all(isinstance(part, launch.substitutions.TextSubstitution) for part in defaults), argument.name
        argument.execute(context)
    nodes = [entity for entity in description.entities if isinstance(entity, Node)]
    functions = [entity for entity in description.entities if isinstance(entity, launch.actions.OpaqueFunction)]
    nodes += [node for function in functions for node in function.execute(context) or () if isinstance(node, Node)]
    assert len(nodes) == len(node_parameters(read(file)))


@pytest.mark.parametrize("argument", ["defaults", "config"])
def test_absent_parameter_file_starts_nothing(argument: str):
    """The real launch_ros only warns, and would move the robot with other parameters than were asked for."""
    launch = pytest.importorskip("launch", reason="launch is not installed (it is not on the package index)")
    pytest.importorskip("launch_ros", reason="launch_ros is not installed (it is not on the package index)")
    from inertid_ros.core.errors import ConfigurationError
    from inertid_ros.nodes.launching import ParameterFile

    context = launch.LaunchContext()
    context.launch_configurations[argument] = "absent.yaml"
    with pytest.raises(ConfigurationError, match=f"{argument}:=absent.yaml: there is no such parameter file"):
        ParameterFile(argument).perform(context)
    context.launch_configurations[argument] = ""
    own = str(ROOT / "config" / "calibrate.yaml")
    assert ParameterFile(argument, own).perform(context) == own


def test_a_misspelt_argument_is_refused():
    """`ros2 launch` itself would go on without it."""
    from inertid_ros.config.yaml_files import check_arguments
    from inertid_ros.core.errors import ConfigurationError

    path = ROOT / "launch" / "calibrate.launch.py"
    file, names = str(path), sorted(arguments(read(path)))
    for words in (["inertid_ros", "calibrate.launch.py"], ["-d", file]):
        check_arguments(["ros2", "launch", *words, *(f"{name}:=x" for name in names)], file, names)
        for name in names:
            for wrong in (name[:-1], f"{name}s", name.replace("_", "") if "_" in name else f"_{name}"):
                with pytest.raises(ConfigurationError, match=f"^{path.name}: {wrong}:= .*did you mean {name}:="):
                    check_arguments(["ros2", "launch", *words, f"{wrong}:=x"], file, names)
    including = ["ros2", "launch", "my_robot", "calibrate.launch.py", "ur_type:=ur5e"]
    check_arguments(including, file, names)  # another launch file of this name, which includes ours


def test_a_switch_that_is_off():
    from inertid_ros.config.yaml_files import check_switches
    from inertid_ros.core.errors import ConfigurationError

    defaults, switches = {"calibrate": "true", "plan": ""}, {"calibrate": ("plan",)}
    check_switches({"calibrate": "true", "plan": "a.yaml"}, defaults, "x.launch.py", switches)
    check_switches({"calibrate": "False", "plan": ""}, defaults, "x.launch.py", switches)
    with pytest.raises(ConfigurationError, match="plan:=a.yaml has no effect while calibrate:=False"):
        check_switches({"calibrate": "False", "plan": "a.yaml"}, defaults, "/somewhere/x.launch.py", switches)
