"""ROS 2 nodes: parameters in, callbacks, numerics, messages out."""
