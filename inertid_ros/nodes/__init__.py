"""ROS 2 nodes: parameters in, callbacks, numerics, messages out. They may import everything."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is loaded: threads of its small matrices would wait, and spin

MODULES = {
    name: f"{__name__}.{module}"
    for name, module in {
        "excitation": "excitation.node",
        "recorder": "recorder.node",
        "identifier": "identifier.node",
        "online": "online.node",
        "calibrate": "calibrate",
        "measure_payload": "measure_payload",
        "replay": "replay",
        "simulator": "simulator",
        "adaptation": "adaptation",
    }.items()
}
"""Executable to the module with its ``main()``; CMakeLists.txt installs them."""
