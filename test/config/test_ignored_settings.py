"""Nothing that somebody sets is ignored: every file and the command line refuse slips and options without effect."""

import argparse
import random
import re

import attrs
import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from support.paths import CONFIG
from support.wrong_settings import (
    NAME,
    OF_COMMANDS,
    TREES,
    applies,
    misspelt,
    named_both,
    nested,
    other_value,
    setting,
    without_effect,
)

from inertid_ros.cli.settings import configuration
from inertid_ros.config.configuration import EFFECTS, Configuration, ExcitationConfiguration, check_configuration
from inertid_ros.config.nodes import NODES, declared
from inertid_ros.config.option_fields import options
from inertid_ros.config.structuring import flow
from inertid_ros.config.yaml_files import check_parameter_file, known_keys, load_configuration
from inertid_ros.core.errors import ConfigurationError

OF_NODES = [(node, entry) for node in NODES for entry in declared(node)]
SEEDS = st.integers(0, 2**32 - 1)
OWN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
CONTRADICTIONS = [(tree, effect, option) for tree in TREES for effect in EFFECTS for option in effect.options
    if applies(effect, option, {entry.key: entry for entry in options(tree)})]


def of_command(tree, *settings, config=None, command=""):
    command = command or ("excite" if tree is ExcitationConfiguration else "identify")
    return configuration(argparse.Namespace(config=config, set=list(settings), lock=[], command=command), tree)


@OWN_FOLDER
@given(key=st.sampled_from(sorted(OF_COMMANDS)), seed=SEEDS)
def test_a_slip_in_a_plain_file_and_on_the_command_line(tmp_path, key, seed):
    rng = random.Random(seed)
    wrong, value = misspelt(key, rng), other_value(OF_COMMANDS[key], rng)
    if wrong in known_keys() or any(f"{other}.".startswith(f"{wrong}.") for other in OF_COMMANDS):
        return
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(nested({wrong: value})))
    for tree in TREES:  # whichever of them the section belongs to
        with pytest.raises(ConfigurationError, match=re.escape(wrong.split(f".{NAME}")[0])) as caught:
            load_configuration(file, tree)
        assert str(caught.value).startswith(str(file)) and "\n" not in str(caught.value)
        with pytest.raises(ConfigurationError, match=re.escape(wrong.split(f".{NAME}")[0])):
            of_command(tree, f"{wrong}={flow(value)}")


@OWN_FOLDER
@given(place=st.sampled_from(OF_NODES), below=st.sampled_from(["own", "/**", "/robot1/**"]), seed=SEEDS)
def test_a_slip_in_a_parameter_file(tmp_path, place, below, seed):
    rng = random.Random(seed)
    node, entry = place
    wrong, value = misspelt(entry.key, rng), other_value(entry, rng)
    block = f"/**/{node}" if below == "own" else below
    if wrong in known_keys(node if below == "own" else ""):
        return
    file = tmp_path / "parameters.yaml"
    file.write_text(yaml.safe_dump({block: {"ros__parameters": nested({wrong: value})}}))
    for read in (check_parameter_file, *(lambda path, tree=tree: load_configuration(path, tree) for tree in TREES)):
        with pytest.raises(ConfigurationError, match=re.escape(wrong.split(f".{NAME}")[0])) as caught:
            read(file)
        assert str(caught.value).startswith(str(file)) and "\n" not in str(caught.value)


def test_what_was_meant_is_proposed():
    rng, right = random.Random(1), 0
    keys = [key for key in sorted(known_keys()._keys) if len(key.rpartition(".")[2]) > 4]
    slips = [(key, misspelt(key, rng)) for key in rng.sample(keys, 200)]
    for key, wrong in slips:
        right += wrong in known_keys() or known_keys().nearest(wrong) == key.replace("<name>", NAME)
    assert right > 0.9 * len(slips)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=st.sampled_from(CONTRADICTIONS), seed=SEEDS)
def test_an_option_without_effect_beside_another_one(tmp_path, case, seed):
    tree, effect, option = case
    known = {entry.key: entry for entry in options(tree)}
    values = without_effect(effect, option, known, random.Random(seed))
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(nested(values)))
    for given_by in (
        lambda: of_command(tree, config=str(file)),
        lambda: of_command(tree, *(f"{key}={flow(value)}" for key, value in values.items())),
        lambda: check_configuration(load_configuration(file, tree), str(file)),
    ):
        with pytest.raises(ConfigurationError, match="has no effect while") as caught:
            given_by()
        assert any(named_both(str(caught.value), key, EFFECTS) for key in values), str(caught.value)


@settings(max_examples=40, deadline=None)
@given(case=st.sampled_from(CONTRADICTIONS), seed=SEEDS)
def test_a_default_says_nothing(case, seed):
    """Written down or not: files that hold every value, as those that ship, would contradict themselves otherwise."""
    tree, effect, option = case
    known = {entry.key: entry for entry in options(tree)}
    values = without_effect(effect, option, known, random.Random(seed))
    own = [key for key in setting(option, known, random.Random(seed)) if key in known]
    values |= {key: known[key].default for key in own}
    try:
        of_command(tree, *(f"{key}={flow(list(v) if isinstance(v, tuple) else v)}" for key, v in values.items()))
    except ConfigurationError as error:  # about those that are no defaults
        assert not any(f"{key} is" in str(error) for key in own)


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_files_that_ship_ignore_nothing(path):
    check_parameter_file(path)
    for tree in TREES:
        of_command(tree, config=str(path))


def test_what_belongs_elsewhere_is_known_there(tmp_path):
    file = tmp_path / "parameters.yaml"

    def write(**blocks):
        file.write_text(yaml.safe_dump({f"/{name}": {"ros__parameters": own} for name, own in blocks.items()}))

    rclpy = {"use_sim_time": True, "qos_overrides": {"/clock": {"subscription": {"depth": 1}}}}
    write(**{"**": {"monitor": {"max_age_s": 0.2}, "prepare": {"cutoff_hz": 5.0}, "rounds": 2, **rclpy}})
    check_parameter_file(file)
    assert load_configuration(file).prepare.cutoff_hz == 5.0
    load_configuration(file, ExcitationConfiguration)
    write(driver={"anything": 1}, **{"**/excitation": rclpy})  # another package's node
    check_parameter_file(file)
    for block, key, message in (
        ("**/excitation", "speed_scale", "speed_scale is a parameter of calibrate and measure_payload, not of excitat"),
        ("**/recorder", "speed_scal", "speed_scal is not an option of recorder; did you mean speed_scale of calibrate"),
        ("**/excitatoin", "tick_s", "excitatoin is not a node of this package; did you mean excitation?"),
        ("**", "state_timeout_s", "state_timeout_s is not an option; did you mean monitor.state_timeout_s?"),
    ):
        write(**{block: {key: 0.1}})
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            check_parameter_file(file)
    file.write_text("monitor: {max_age_s: 0.2}\n")
    with pytest.raises(ConfigurationError, match="monitor.max_age_s is not an option of commands, but of nodes; write"):
        load_configuration(file)
    with pytest.raises(ConfigurationError, match="is not a ROS parameter file; nest keys"):
        check_parameter_file(file)


def test_two_options_of_the_command_line_that_contradict_each_other(tmp_path):
    for settings_, message in (
        (["prepare.cutoff_hz=5", "prepare.cutoff_hz=6"], "--set prepare.cutoff_hz=5 and --set prepare.cutoff_hz=6 c"),
        (["prepare.cutoff_hz=5", "prepare={cutoff_hz: 6}"], "contradict each other; give one of them"),
        (["robot.locked_joints={a: 1.0}", "robot.locked_joints.a=2.0"], "contradict each other; give one of them"),
        (["robot.loads.box.mass=2.0", "robot={loads: {box: {mass: 3.0}}}"], "contradict each other; give one of them"),
    ):
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            of_command(Configuration, *settings_)
    assert of_command(Configuration, "prepare.cutoff_hz=5", "prepare.cutoff_hz=5").prepare.cutoff_hz == 5.0
    given_ = argparse.Namespace(config=None, set=["identify.equations=force"], lock=["a=1", "a=2"], command="identify",
        model="momentum")
    with pytest.raises(ConfigurationError, match="--model momentum and --set identify.equations=force contradict"):
        configuration(given_, Configuration, {"identify.equations": "momentum"})
    with pytest.raises(ConfigurationError, match="robot.locked_joints.a=0.1 and --lock a=1 contradict"):
        configuration(attrs_like(given_, set=["robot.locked_joints.a=0.1"], lock=["a=1"]), Configuration)
    file = tmp_path / "robot.yaml"
    file.write_text("robot: {locked_joints: {a: 1.0}, gravity: [0, 0, -9.8]}")
    robot = of_command(Configuration, "robot={base: free}", config=str(file)).robot
    assert robot.base == "free" and robot.locked_joints == {"a": 1.0} and robot.gravity == (0.0, 0.0, -9.8)
    cleared = of_command(Configuration, "robot.locked_joints={}", config=str(file)).robot
    assert cleared.locked_joints == {} and attrs.evolve(cleared, locked_joints={"a": 1.0}).gravity == robot.gravity


def attrs_like(namespace, **changes):
    return argparse.Namespace(**{**vars(namespace), **changes})


@pytest.mark.parametrize(
    ("command", "setting", "files"),
    [
        ("info", "identify.estimator=wls", {"subject": "robot.urdf"}),
        ("convert", "robot.base=free", {"input": "run.mcap"}),
        ("perturb", "prepare.cutoff_hz=5", {"urdf": "robot.urdf"}),
        ("identify", "topics.joint_states=/other", {"recordings": ["a.npz", "b.npz"], "validate": ["c.npz"]}),
        ("convert", "prepare.stamps=arrival", {"input": "run.npz"}),
    ],
)
def test_a_setting_that_a_command_does_not_use(command, setting, files):
    arguments = argparse.Namespace(config=None, set=[setting], lock=[], command=command, **files)
    with pytest.raises(ConfigurationError, match=f"^--set {re.escape(setting)}: .*leave it out"):
        configuration(arguments, Configuration)


def test_topics_of_bags_beside_other_files():
    files = {"recordings": ["a.npz", "b.mcap"], "validate": []}
    setting = ["topics.joint_states=/other"]
    configuration(argparse.Namespace(config=None, set=setting, lock=[], command="identify", **files), Configuration)


def test_a_setting_of_numbers_that_none_uses():
    with pytest.raises(ConfigurationError, match="excitation.iterations is 7, .* set excitation.improved to 1 or more"):
        of_command(ExcitationConfiguration, "excitation.improved=0", "excitation.iterations=7")
