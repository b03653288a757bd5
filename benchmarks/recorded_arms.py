"""Two real arms, one default configuration: a KUKA LWR4 with torque sensors and a Staubli TX40 with motor currents."""

import csv
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tables import datasets, machine, publish, table

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.validation import torque_errors
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.force_equations import predict_torque
from inertid_ros.robot.bodies.layout import Coupling
from inertid_ros.robot.model import ModelOptions, RobotModel, load_model

PAIRS = ((("run1",), "run2", 2.0), (("run2", "run3"), "run1", 2.3), (("run1", "run2"), "run3", 4.0))
TX40_LEAST_SQUARES = (6.3, 5.6, 8.5, 10.1, 34.5, 22.5)  # % of RMS torque, held out, from the data page


def lwr4(folder: Path) -> None:
    classic = ModelOptions(drive_terms=("rotor_inertia", "viscous", "coulomb", "offset"))
    model, plain_model = load_model(folder / "kuka_lwr4.urdf"), load_model(folder / "kuka_lwr4.urdf", classic)
    runs = {name: prepare(load_recording(folder / f"{name}.npz"), model) for name in ("run1", "run2", "run3")}
    rows = []
    for train, test, wanted in PAIRS:
        began = time.perf_counter()
        fitted = [runs[name] for name in train]
        estimate = identify(model, fitted)
        seconds = time.perf_counter() - began
        ours = torque_errors(model, estimate.parameters, [runs[test]])
        pullback = identify(model, fitted, IdentifyOptions(regularizer="pullback"))
        plain = torque_errors(plain_model, _least_squares(plain_model, fitted), [runs[test]])
        given = torque_errors(model, model.prior, [runs[test]])
        rows.append(
            [
                f"{' + '.join(train)} → {test}",
                f"{100 * given.relative_error:.2f}",
                f"{100 * plain.relative_error:.2f}",
                f"{100 * torque_errors(model, pullback.parameters, [runs[test]]).relative_error:.2f}",
                f"**{100 * ours.relative_error:.2f}**",
                f"{wanted:.1f}",
                "yes" if estimate.consistent else "no",
                f"{seconds:.2f}",
            ]
        )
    header = ["train → test", "URDF", "least squares", "pullback", "default", "wanted", "consistent", "seconds"]
    publish("lwr4", "## KUKA LWR4: held-out torque error [%]\n\n" + table(header, rows) + f"\n\n{machine()}")


def _least_squares(model: RobotModel, samples: list[Samples]) -> np.ndarray:
    """Ordinary least squares of minimum norm, the classical answer."""
    R, z = compress(model, samples).whitened(np.ones(model.joints))
    return np.linalg.lstsq(R, z, rcond=1e-6)[0]


def tx40(folder: Path) -> None:
    """The authors dropped samples below one per cent of the joint's speed limit; here half a per cent of its fast
    speed comes nearest to that."""
    wrist = Coupling("wrist", ("joint_5", "joint_6"), (1.0, 1.0))
    terms = ("rotor_inertia", "viscous", "coulomb", "offset")
    model = load_model(folder / "tx40_mdh_modified.urdf", ModelOptions(drive_terms=terms, couplings=(wrist,)))
    samples = prepare(load_recording(folder / "run1_5khz.npz"), model, PrepareOptions(low_speed_fraction=0.005))
    published = {
        row[0]: (float(row[3]), float(row[4])) for row in csv.reader((folder / "reference_base_params.csv").open())
    }
    rows = []
    for name, value in _published_names(identify(model, [samples])).items():
        target, relative = published[name]
        deviation = abs(target) * relative / 100
        rows.append([name, f"{value:.3f}", f"{target:.3f}", f"{deviation:.3f}", f"{(value - target) / deviation:+.2f}"])
    publish(
        "tx40-parameters",
        "## Stäubli TX40: drive parameters against the published ones\n\n"
        + table(["parameter", "ours", "published", "its deviation", "difference in deviations"], rows),
    )
    _tx40_held_out(model, prepare(load_recording(folder / "run1_5khz.npz"), model))


def _published_names(estimate: Estimate) -> dict[str, float]:
    """Our parameters in the authors' terms: a coupled drive counts in full on each joint's own term there."""
    value = dict(zip(estimate.layout.names, estimate.parameters, strict=True))
    named = {}
    for joint in range(1, 7):
        coupled = joint >= 5
        named[f"fv{joint}"] = value[f"joint_{joint}.viscous"] + coupled * value["wrist.viscous"]
        named[f"fs{joint}"] = value[f"joint_{joint}.coulomb"]
        named[f"off{joint}"] = value[f"joint_{joint}.offset"]
        if joint in (3, 4, 5):
            named[f"Ia{joint}"] = value[f"joint_{joint}.rotor_inertia"] + coupled * value["wrist.rotor_inertia"]
    return named | {
        "Iam6": value["wrist.rotor_inertia"],
        "fvm6": value["wrist.viscous"],
        "fsm6": value["wrist.coulomb"],
    }


def _tx40_held_out(model: RobotModel, samples: Samples) -> None:
    split = int(0.65 * len(samples))
    train, test = _rows(samples, slice(0, split)), _rows(samples, slice(split, None))
    error = predict_torque(model, identify(model, [train]).parameters, test) - test.tau
    rows = []
    for joint, wanted in enumerate(TX40_LEAST_SQUARES):
        kept = test.mask[:, joint]
        share = np.linalg.norm(error[kept, joint]) / np.linalg.norm(test.tau[kept, joint])
        rows.append([model.joint_names[joint], f"**{100 * share:.1f}**", f"{wanted:.1f}"])
    publish(
        "tx40-held-out",
        "## Stäubli TX40: held-out torque error, sliding samples [% of RMS torque]\n\n"
        + table(["joint", "default", "plain least squares"], rows),
    )


def _rows(samples: Samples, rows: slice) -> Samples:
    names = ("time", "q", "v", "a", "tau", "mask", "usable", "friction_direction")
    return replace(samples, **{name: getattr(samples, name)[rows] for name in names})


if __name__ == "__main__":
    data = datasets()
    if data is not None:
        lwr4(data / "kuka_lwr4")
        tx40(data / "staubli_tx40")
