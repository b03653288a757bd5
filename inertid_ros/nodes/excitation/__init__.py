"""The excitation node: plans exciting motions, moves the robot along them, and brings it to rest after any failure."""
