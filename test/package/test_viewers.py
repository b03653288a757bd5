"""Layouts for RViz, PlotJuggler and Foxglove: topics that nodes publish, and fields that their messages have."""

import json
import re
import xml.etree.ElementTree as ElementTree

import yaml
from support.paths import ROOT

VIEWERS = ROOT / "viewers"
# Topic of a node with defaults to its message; those of other packages have no fields that layouts use.
STATUS = {
    "/excitation/status": "ExcitationStatus", "/recorder/status": "RecorderStatus",
    "/identifier/status": "IdentifierStatus", "/online/change": "RobotChange",
}  # fmt: skip
OTHERS = {"/robot_description", "/identifier/markers", "/diagnostics", "/joint_states"}


def fields(message: str) -> set[str]:
    text = (ROOT / "msg" / f"{message}.msg").read_text(encoding="utf-8")
    return set(re.findall(r"^(?!uint8 [A-Z_]+=)\S+ +(\w+)", text, re.M))


def check(curve: str, separator: str) -> None:
    topic = next(topic for topic in STATUS if curve.startswith(topic + separator))
    assert curve.removeprefix(topic + separator) in fields(STATUS[topic]), curve


def test_topics_are_published_by_a_node() -> None:
    """Of the policy of SROS 2, which a test compares with what running nodes use."""
    published = set()
    for profile in ElementTree.parse(ROOT / "security" / "inertid_ros.policy.xml").getroot().iter("profile"):
        allowed = [topics for topics in profile.findall("topics") if topics.get("publish") == "ALLOW"]
        names = [topic.text or "" for topics in allowed for topic in topics.findall("topic")]
        published |= {name.replace("~", f"/{profile.attrib['node']}", 1).removeprefix("/") for name in names}
    assert {topic.removeprefix("/") for topic in {*STATUS, *OTHERS}} <= published


def test_rviz() -> None:
    content = yaml.safe_load((VIEWERS / "calibration.rviz").read_text(encoding="utf-8"))
    displays = content["Visualization Manager"]["Displays"]
    topics = [value for shown in displays for key, value in shown.items() if key in ("Topic", "Description Topic")]
    assert {topic["Value"] for topic in topics} == {"/robot_description", "/identifier/markers"}
    assert {topic["Durability Policy"] for topic in topics} == {"Transient Local"}  # both are latched


def test_plotjuggler() -> None:
    curves = ElementTree.parse(VIEWERS / "calibration_plotjuggler.xml").getroot().iter("curve")
    names = [curve.attrib["name"] for curve in curves]
    assert len(names) >= 6
    for name in names:
        check(name, "/")


def test_foxglove() -> None:
    content = json.loads((VIEWERS / "calibration_foxglove.json").read_text(encoding="utf-8"))
    panels = content["configById"]
    for panel in panels.values():
        for path in panel.get("paths", ()):
            check(path["value"], ".")
        assert set(panel.get("topics", ())) <= OTHERS
        assert panel.get("topicToRender", "/diagnostics") in OTHERS
        assert panel.get("topicPath", "/identifier/status") in STATUS
    placed = re.findall(r'"(?:first|second)": "([^"]+)"', json.dumps(content["layout"]))
    assert sorted(placed) == sorted(panels)
