"""Memory of this process, from the kernel."""

from pathlib import Path


def peak_mb() -> float:
    """Peak resident memory [MB] of this process, interpreter and libraries included."""
    return _status("VmHWM")


def resident_mb() -> float:
    """Memory [MB] resident now."""
    return _status("VmRSS")


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:")) * 1024 / 1e6
