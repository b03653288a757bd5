// Stands for rclcpp, which has no wheels: the quality of service that a subscription asks for.

#pragma once

namespace rclcpp {

struct QoS {
  explicit QoS(int depth) : depth(depth) {}
  QoS & reliable() { return is_reliable = true, *this; }
  QoS & transient_local() { return is_latched = true, *this; }
  int depth;
  bool is_reliable = false, is_latched = false;
};

}  // namespace rclcpp
