"""``inertid excite`` of a robot whose base nothing holds."""

from support.robots.free_base import free_urdf

from inertid_ros.cli.main import main


def test_a_motion_of_a_free_base_is_not_promised(tmp_path, capsys):
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(free_urdf(2, 3))
    command = ["excite", "--urdf", str(urdf), "--set", "robot.base=free", "--output", str(tmp_path / "out")]
    assert main(command) == 2
    assert "its base is free" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
