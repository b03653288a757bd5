// Stands for rclcpp, which has no wheels: errors are printed.

#pragma once

#include <cstdio>

namespace rclcpp {

struct Logger {};

}  // namespace rclcpp

#define RCLCPP_ERROR(logger, ...) ((void)(logger), std::printf(__VA_ARGS__), std::printf("\n"))
