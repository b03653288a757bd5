"""The online node: parameters, changes and payloads of a calibrated robot from its joint states as they come."""
