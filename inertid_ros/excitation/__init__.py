"""Motions that excite a robot's parameters: planned within its limits, checked, and executed safely."""
