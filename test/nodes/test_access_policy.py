"""The SROS 2 policy: exactly what the nodes use, by names and not by patterns."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from support.package_parameters import node_names  # noqa: E402
from support.paths import ROOT  # noqa: E402

from inertid_ros.nodes.tools.access_policy import ACCESS, FILE, expressions, policy_text, used_by_nodes  # noqa: E402
from inertid_ros.nodes.tools.processes import claim_domain  # noqa: E402

COMMITTED = (ROOT / "security" / FILE).read_text(encoding="utf-8")
COMMAND = "run: python -m inertid_ros.nodes.tools.access_policy security"


@pytest.fixture(scope="module")
def used() -> Iterator[dict]:
    with pytest.MonkeyPatch.context() as patch, claim_domain() as domain:  # nodes of other tests have the same names
        patch.setenv("ROS_DOMAIN_ID", str(domain))
        yield used_by_nodes()


def allowed() -> dict[str, dict[tuple[str, str], set[str]]]:
    """Node to the names of each access in the file."""
    found: dict[str, dict[tuple[str, str], set[str]]] = {}
    for profile in ElementTree.fromstring(COMMITTED.encode()).iter("profile"):
        rules = found.setdefault(profile.attrib["node"], {})
        for element in profile:
            for attribute, value in element.attrib.items():
                assert value == "ALLOW"
                rules[element.tag, attribute] = {str(single.text) for single in element}
    return found


def test_the_file_allows_what_the_running_nodes_use_and_nothing_else(used: dict) -> None:
    graph = {
        name: {access: set(names) for access, names in accesses.items() if names}
        for (name, _namespace), accesses in used.items()
    }
    assert allowed() == graph, COMMAND
    assert policy_text(used) == COMMITTED, COMMAND


def test_every_node_has_an_enclave_of_its_own() -> None:
    policy = ElementTree.fromstring(COMMITTED.encode())
    assert policy.tag == "policy" and policy.attrib == {"version": "0.2.0"}
    assert sorted(enclave.attrib["path"] for enclave in policy.iter("enclave")) == [f"/{node}" for node in node_names()]
    assert set(allowed()) == set(node_names())


def test_nothing_is_allowed_by_a_pattern() -> None:
    for rules in allowed().values():
        assert set(rules) <= set(ACCESS)
        assert not any(set("*?[") & set(name) for names in rules.values() for name in names)


def test_who_may_move_the_robot() -> None:
    """Trajectories come from the excitation node only, which only the flows arm, and torques from adaptation only."""
    rules = allowed()
    senders = {node for node in rules if "/joint_trajectory" in rules[node].get(("topics", "publish"), ())}
    armers = {node for node in rules if "/excitation/change_state" in rules[node].get(("services", "request"), ())}
    setters = {node for node in rules if any("set_param" in n for n in rules[node].get(("services", "request"), ()))}
    torques = {node for node in rules if "/effort_commands" in rules[node].get(("topics", "publish"), ())}
    assert torques == {"adaptation"}
    assert (senders, armers, setters) == ({"excitation"}, {"calibrate", "measure_payload"}, set())


def test_names_are_relative_to_node_and_namespace() -> None:
    full = ["/left/excitation/status", "/left/joint_states", "/rosout", "/left/excitation/excite/_action/status"]
    assert expressions(full, "excitation", "/left") == ("/rosout", "joint_states", "~/status")
    assert expressions(["/joint_states", "/excitation/status"], "excitation", "/") == ("/joint_states", "~/status")
