"""The excitation node: plans exciting motions and moves the robot along them, to rest after any failure."""
