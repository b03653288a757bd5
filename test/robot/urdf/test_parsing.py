"""URDF text from hostile hands: refused in one line, before Pinocchio sees it."""

import re

import pytest

from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf.parsing import parse_description, read_description

INERTIAL = (
    '<inertial><origin xyz="0 0 0.1"/><mass value="1"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>'
)
LIMIT = '<limit lower="-1" upper="1" velocity="1" effort="10"/>'


def _link(name, inertial=INERTIAL):
    return f'<link name="{name}">{inertial}</link>'


def _joint(name, parent, child, joint_type="revolute", more=f'<axis xyz="0 0 1"/>{LIMIT}'):
    return f'<joint name="{name}" type="{joint_type}"><parent link="{parent}"/><child link="{child}"/>{more}</joint>'


def _robot(*elements):
    return f'<robot name="r">{"".join(elements)}</robot>'


def _arm(link=None, joint=None):
    return _robot(_link("base"), link or _link("arm"), joint or _joint("j", "base", "arm"))


def _refuse(text, message):
    with pytest.raises(ModelError, match=message) as caught:
        load_model(text)
    assert "\n" not in str(caught.value)


def test_the_plain_arm_is_accepted():
    assert load_model(_arm()).joint_names == ("j",)


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf", "1e999", "", "x", "1 2", "-1", "0x10"])
def test_an_impossible_mass_is_refused(value):
    _refuse(_arm(_link("arm", INERTIAL.replace('value="1"', f'value="{value}"'))), "^URDF link 'arm': mass")


@pytest.mark.parametrize("value", ["nan", "inf", "x", "-0.02"])
def test_an_impossible_inertia_is_refused(value):
    _refuse(_arm(_link("arm", INERTIAL.replace('ixx="0.02"', f'ixx="{value}"'))), "^URDF link 'arm': inertia")


@pytest.mark.parametrize("missing", ['<mass value="1"/>', ' ixx="0.02"', 'value="1"'])
def test_a_missing_number_is_named(missing):
    _refuse(_arm(_link("arm", INERTIAL.replace(missing, ""))), "^URDF link 'arm': (mass|inertia) has no '")


def test_a_triangle_violation_is_noticed_and_repaired_for_identification(caplog):
    flat = INERTIAL.replace('izz="0.02"', 'izz="0.05"')
    model = load_model(_arm(_link("arm", flat)))
    assert "URDF link 'arm': inertia is not physically consistent" in caplog.text
    assert not is_consistent(model.body_prior).any() and is_consistent(model.consistent_body_prior).all()


def test_a_moving_link_without_inertia_gets_one_which_is_told(caplog):
    log_once.cache_clear()
    model = load_model(_arm(_link("arm", "")))
    assert is_consistent(model.body_prior).all() and "<inertial>" in model.urdf
    assert re.search("no inertia for arm; it is guessed from their shapes at 1200 kg/m.3", caplog.text)


@pytest.mark.parametrize("xyz", ["0 0", "nan 0 0", "a b c", "0 0 inf", "0 0 0 0", ""])
def test_an_impossible_origin_is_refused(xyz):
    _refuse(_arm(_link("arm", INERTIAL.replace("0 0 0.1", xyz))), "^URDF link 'arm': xyz='.*' is not three finite")
    _refuse(_arm(joint=_joint("j", "base", "arm", more=f'<origin xyz="{xyz}"/>{LIMIT}')), "^URDF joint 'j': xyz=")


@pytest.mark.parametrize("joint_type", ["revolute", "prismatic", "continuous"])
def test_a_zero_axis_is_refused(joint_type):
    joint = _joint("j", "base", "arm", joint_type, f'<axis xyz="0 0 0"/>{LIMIT}')
    _refuse(_arm(joint=joint), "^URDF joint 'j': axis is zero")
    _refuse(_arm(joint=joint.replace(' xyz="0 0 0"', "")), "^URDF joint 'j': axis is zero")


def test_the_reason_of_a_library_is_in_the_error(capfd):
    """Pinocchio's parser of URDF prints it to stderr and raises an error without it."""
    _refuse(_arm(joint=_joint("j", "base", "arm", more='<axis xyz="0 0 1"/>')), r"\[j\] .* does not specify limits")
    assert not capfd.readouterr().err


@pytest.mark.parametrize(
    "limit, message",
    [
        ('<limit lower="1" upper="-1" velocity="1" effort="1"/>', "limit lower 1 is above upper -1"),
        ('<limit lower="nan" upper="1" velocity="1" effort="1"/>', "limit lower='nan' is not finite"),
        ('<limit lower="0" upper="1" velocity="x" effort="1"/>', "limit velocity='x' is not a number"),
        ('<limit lower="0" upper="1" velocity="1" effort="inf"/>', "limit effort='inf' is not finite"),
    ],
)
def test_impossible_limits_are_refused(limit, message):
    _refuse(_arm(joint=_joint("j", "base", "arm", more=limit)), "^URDF joint 'j': " + message)


@pytest.mark.parametrize("attribute", ['damping="-1"', 'friction="nan"', 'friction="-0.1"', 'damping="x"'])
def test_impossible_friction_is_refused(attribute):
    joint = _joint("j", "base", "arm", more=f"{LIMIT}<dynamics {attribute}/>")
    _refuse(_arm(joint=joint), "^URDF joint 'j': dynamics (damping|friction)")


@pytest.mark.parametrize(
    "elements, message",
    [
        ((), "has no <link>"),
        ((_link("a"), _link("b")), r"has 2 root links \['a', 'b'\]"),
        ((_link("a"), _link("a")), "URDF link 'a': defined twice"),
        ((_link("a"), _link("b"), _joint("j", "a", "b"), _joint("j", "a", "b")), "URDF joint 'j': defined twice"),
        ((_link("a"), _joint("j", "a", "ghost")), "child link 'ghost' does not exist"),
        ((_link("a"), _joint("j", "ghost", "a")), "parent link 'ghost' does not exist"),
        ((_link("a"), _link("b"), _joint("j", "a", "b"), _joint("k", "b", "a")), "has 0 root links"),
        ((_link("a"), _joint("j", "a", "a")), "has 0 root links"),
        (
            (_link("a"), _link("b"), _link("c"), *(_joint(n, p, "c") for n, p in (("j", "a"), ("k", "b")))),
            "already has a parent; closed loops are not supported",
        ),
        (
            (_link("root"), *(_link(n) for n in "abc"), *(_joint(p + c, p, c) for p, c in ("ab", "bc", "ca"))),
            "more than 200 joints from the root|root links",
        ),
        (('<link name=""/>',), "has no name"),
        (("<link/>",), "has no name"),
    ],
)
def test_what_is_no_tree_is_refused(elements, message):
    _refuse(_robot(*elements), message)


@pytest.mark.parametrize("joint_type", ["floating", "planar", "spherical", "", "Revolute"])
def test_other_joint_types_are_refused(joint_type):
    text = _arm(joint=_joint("j", "base", "arm", joint_type))
    _refuse(text, f"^URDF joint 'j': type '{joint_type}' is not supported")


@pytest.mark.parametrize(
    "text, message",
    [
        ("hello", "no such URDF file"),
        ("<robot", "URDF: not XML"),
        ("<robot></robots>", "URDF: not XML"),
        ("<html/>", "root element is <html>, expected <robot>"),
        ("<robot/>", "has no <link>"),
        ('<robot xmlns="http://example.com/ns"/>', "root element is"),
        ("\0" + _arm(), "neither a file name nor XML"),
        ("a robot:\n" + _arm(), "neither a file name nor XML"),
        ("x" * 5000, "neither a file name nor XML"),
        (_arm().replace("<link", "\0<link"), "not XML"),
    ],
)
def test_what_is_no_urdf_is_refused(text, message):
    _refuse(text, message)


def test_a_chain_of_four_thousand_links_is_refused():
    links = [_link(f"l{k}") for k in range(4000)]
    joints = [_joint(f"j{k}", f"l{k}", f"l{k + 1}") for k in range(3999)]
    _refuse(_robot(*links, *joints), "has 4000 links, more than 1000")
    _refuse(_robot(*links[:400], *joints[:399]), "more than 200 joints from the root")


def test_deeply_nested_elements_are_refused():
    depth = 10_000
    _refuse(f'<robot name="r">{"<a>" * depth}{"</a>" * depth}{_link("b")}</robot>', "not XML")


def test_a_document_type_is_refused_and_its_entities_never_expanded():
    bomb = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 12))
    text = f'<!DOCTYPE robot [<!ENTITY e0 "x">{bomb}]><robot name="&e11;">{_link("a")}</robot>'
    _refuse(text, "not XML")
    text = f'<!DOCTYPE robot [<!ENTITY e0 "x">]><robot name="&e0;">{_link("a")}</robot>'
    _refuse(text, "document type with entities")


def test_an_external_entity_is_not_read(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("swordfish")
    text = f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{secret.as_uri()}">]><robot name="r">&x;{_link("a")}</robot>'
    with pytest.raises(ModelError) as caught:
        load_model(text)
    assert "swordfish" not in str(caught.value)


def test_a_file_of_absurd_size_is_refused():
    _refuse(_arm() + "<!--" + "x" * (17 * 2**20) + "-->", "larger than 16 MiB")


def test_text_cut_anywhere_is_a_clean_error():
    whole = _robot(_link("base"), _link("arm"), "\n<!-- a comment -->\n", _joint("j", "base", "arm"))
    for length in range(1, len(whole) - 1, 20):
        _refuse(whole[:length], "URDF")


def test_files_are_read_and_others_named(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(_arm())
    assert read_description(path) == read_description(str(path)) == _arm()
    assert read_description("  \n" + _arm()).strip() == _arm()
    (tmp_path / "bytes.urdf").write_bytes(b"\xff\xfe\x00\x01")
    cases = (("absent.urdf", "no such URDF file"), ("bytes.urdf", "cannot be read"), ("", "is a directory"))
    for name, message in cases:
        with pytest.raises(ModelError, match=message) as caught:
            read_description(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path))


def test_a_byte_order_mark_is_no_obstacle(tmp_path):
    assert load_model("\ufeff" + _arm()).joints == 1
    (tmp_path / "bom.urdf").write_text(_arm(), encoding="utf-8-sig")
    assert load_model(tmp_path / "bom.urdf").joints == 1


def test_an_endless_file_is_refused():
    with pytest.raises(ModelError, match="not a regular file"):
        read_description("/dev/zero")


def test_comments_and_foreign_elements_are_no_obstacle():
    head = "<?xml version='1.0' encoding='utf-8'?><!-- é --><robot name='ü'><gazebo><link name='x'/></gazebo>"
    text = head + _arm().removeprefix('<robot name="r">')
    assert parse_description(text).get("name") == "ü"
    assert load_model(text).joints == 1


def test_a_latin_1_declaration_on_decoded_text_is_no_obstacle():
    text = f"<?xml version='1.0' encoding='ISO-8859-1'?><!-- é -->{_arm()}"
    assert load_model(text).joints == 1
