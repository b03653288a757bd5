"""ROS 2 nodes: parameters, callbacks and messages around the numerics. Modules here may import every other folder."""

import importlib
import os
import signal

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before the import of NumPy, whose threads would busy-wait on small matrices

MODULES = {"excitation": f"{__name__}.excitation.node"} | {
    name: f"{__name__}.{name}" for name in (
        "recorder", "identifier", "online", "calibrate", "measure_payload", "replay", "simulator", "adaptation",
        "feed_forward")}
"""Map from executable to the module with its ``main()``; CMakeLists.txt installs the executables."""

_FLOWS = ("calibrate", "measure_payload")


def run(name: str) -> int:
    """Run a node and return its exit status; during the imports (seconds), a signal ends the process at once."""
    end_at_once_on_signals(name)
    return int(importlib.import_module(MODULES[name]).main())


def end_at_once_on_signals(name: str) -> None:
    """Let SIGINT and SIGTERM end the process at once, until the node installs its own signal handlers."""

    def end(*_signal: object) -> None:
        if name in _FLOWS:
            print(f"[INFO] [{name}]: interrupted; the robot is at rest", flush=True)
        os._exit(130 if name in _FLOWS else 0)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
