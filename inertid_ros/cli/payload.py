"""``inertid payload``: identify the payload of a calibrated robot."""

import argparse

from inertid_ros.cli.printing import deliver, print_table, progress_bar, quantity_row
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import InertidError
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.data.files.loading import load_recording
from inertid_ros.payload.equations import FrictionDrift
from inertid_ros.payload.offline import PayloadOptions, PayloadOutcome, payload_offline
from inertid_ros.report.report_content import json_text
from inertid_ros.report.results import Result

from .settings import check_same_robot, configuration, inputs


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.output:
        check_file(options.output, options.force, inputs(options))
    result = Result.load(options.result)
    config = configuration(options, Configuration)
    check_same_robot(config, result)
    joints = result.model.recorded_joints
    if options.reference_drift is not None and not options.reference:
        raise InertidError("--reference-drift has no effect without --reference; give both, or leave it out")
    between = FrictionDrift.between_recordings if options.reference_drift is None else options.reference_drift
    wanted = PayloadOptions(options.frame, FrictionDrift(options.drift, between), options.max_mass)
    with progress_bar(options) as progress:
        loaded, reference = ([load_recording(path, config.topics, joints, config.prepare.stamps) for path in paths]
            for paths in (options.recordings, options.reference))
        outcome = payload_offline(result, loaded, reference, wanted, config, progress)
    if options.output:
        write_file(options.output, json_text(outcome.content).encode(), options.force)
    return deliver(options, outcome.content, lambda: _print(outcome), options.output, outcome.notices)


def _print(outcome: PayloadOutcome) -> None:
    payload, content = outcome.payload, outcome.content
    rows = [quantity_row("mass [kg]", payload.mass)]
    rows += [quantity_row(f"com {axis} [m]", quantity) for axis, quantity in zip("xyz", payload.com, strict=True)]
    inertia = zip(content["inertia"], payload.inertia, strict=True)
    rows += [quantity_row(f"inertia {axes} [kg m^2]", element) for axes, element in inertia]
    title = f"Payload in the frame of {payload.tool.name}; inertia about its centre of mass"
    print_table(title, ("", "value", "standard deviation", "95 % interval"), rows)
    for finding in outcome.findings:
        print(f"noticed: {finding}")
    print(f"URScript: {content['as_robots_take_it']['set_target_payload']['script']}")
    print(f"libfranka: {content['as_robots_take_it']['setLoad']['call']}")
    print(f"KUKA: LOAD={content['as_robots_take_it']['LOAD']}")
    print(f"ABB: loaddata {content['as_robots_take_it']['loaddata']}")
