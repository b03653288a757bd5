"""Results and planned motions as files and pages; computes nothing."""
