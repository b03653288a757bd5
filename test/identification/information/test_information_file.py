"""Information comes back from its file to the last bit, and what is no such file is refused in one line."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model, random_states, random_urdf

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.information_file import (
    information_bytes,
    information_from_bytes,
    read_information,
)
from inertid_ros.robot.layout import Coupling
from inertid_ros.robot.model import load_model
from inertid_ros.robot.rotors import Rotor


def _information(seed: int = 0, **options) -> Information:
    rng = np.random.default_rng(seed)
    model = random_model(rng, 3, **options)
    samples = random_states(rng, model, 60)
    return compress(model, [replace(samples, tau=rng.normal(size=samples.q.shape))])


def _same(first: Information, second: Information) -> bool:
    channels = zip(first.channels, second.channels, strict=True)
    return (
        first.layout == second.layout
        and first.robot == second.robot
        and all(
            np.array_equal(a.r_factor, b.r_factor) and np.array_equal(a.columns, b.columns) and a.count == b.count
            for a, b in channels))


def test_information_comes_back_whole():
    extras = {
        "couplings": (Coupling("wrist", ("joint1", "joint2"), (1.0, -0.3)),),
        "rotors": (Rotor("motor", "joint0", "base", 9.1, 0.4, (2e-4, 0.0, 0.0, 2e-4, 0.0, 2e-4), axis=(0.0, 1.0, 0)),)}
    for information in (_information(), _information(1, drive_terms=()), _information(2, **extras)):
        assert _same(information_from_bytes(information_bytes(information), "information"), information)


def test_sessions_add_up_across_files():
    rng = np.random.default_rng(0)
    model = random_model(rng, 3)
    first, second = (replace(random_states(rng, model, n), tau=rng.normal(size=(n, 3))) for n in (50, 70))
    stored = information_from_bytes(information_bytes(compress(model, [first])), "first")
    merged, whole = stored + compress(model, [second]), compress(model, [first, second])
    for a, b in zip(merged.channels, whole.channels, strict=True):
        gram = b.r_factor.T @ b.r_factor
        np.testing.assert_allclose(a.r_factor.T @ a.r_factor, gram, atol=1e-12 * np.abs(gram).max())
        assert a.count == b.count


def test_same_names_are_not_the_same_robot():
    rng = np.random.default_rng(0)
    text = random_urdf(rng, 2)
    upright, tilted = load_model(text), load_model(text, RobotOptions(gravity=(0.0, 9.81, 0.0)))
    for other in (tilted, load_model(random_urdf(rng, 2))):
        assert other.layout == upright.layout
        with pytest.raises(IdentificationError, match="different robots"):
            compress(upright, ()) + compress(other, ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"), (b"", "is not an information file"), (b"not a zip", "is not an information file"),
        (b"PK\x03\x04 cut off", "is not an information file")])
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "file.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(IdentificationError, match=message) as caught:
        read_information(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["format", "layout", "robot", "counts", "columns/1", "triangle/2"])
def test_damaged_files_are_refused(tmp_path, key):
    path = tmp_path / "file.npz"
    path.write_bytes(information_bytes(_information()))
    with np.load(path) as archive:
        content = dict(archive)
    damaged = {
        "format": np.array(99), "layout": np.array("{}"), "counts": content["counts"][:2],
        "columns/1": content["columns/1"] + 1000, "triangle/2": content["triangle/2"] * np.nan}
    lacking = {name: value for name, value in content.items() if name != key}
    for broken in (lacking, {**content, key: damaged[key]} if key in damaged else lacking):
        np.savez(path, **broken)
        with pytest.raises(IdentificationError, match=r"damaged|format|channels"):
            read_information(path)
