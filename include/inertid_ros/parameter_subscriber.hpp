// Identified parameters for a controller: received and checked by a node, taken up between two control steps.

#pragma once

#include <inertid_ros/dynamics.hpp>
#include <inertid_ros/handover.hpp>
#include <inertid_ros/msg/inertial_parameters.hpp>
#include <rclcpp/logging.hpp>
#include <rclcpp/qos.hpp>

namespace inertid_ros {

/// Receives latched InertialParameters, as inertid_ros.ros.ParameterSubscriber of the Python package does.
///
/// A message is refused, with one log line, if it belongs to another robot (model hash), if its validation failed, if
/// its verdict is "do not use" or, with ``only_use``, not "use", or if Dynamics refuses it.
///
/// @tparam Node rclcpp::Node or rclcpp_lifecycle::LifecycleNode
template <class Node>
class ParameterSubscriber {
public:
  using Message = msg::InertialParameters;

  /// @param model see Dynamics
  /// @param model_hash hash of the URDF's kinematics, which ``inertid info robot.urdf`` prints
  ParameterSubscriber(
    Node & node, const pinocchio::Model & model, const std::string & model_hash,
    const std::string & topic = "identifier/parameters", bool only_use = false)
  : model_(model), hash_(model_hash), only_use_(only_use), logger_(node.get_logger()) {
    if (hash_.size() != 64)
      throw std::invalid_argument("model_hash is '" + hash_ + "'; give the hash that 'inertid info robot.urdf' prints");
    subscription_ = node.template create_subscription<Message>(
      topic, rclcpp::QoS(1).reliable().transient_local(), [this](const Message & message) { receive(message); });
  }

  /// Dynamics with the newest parameters, or nullptr before the first; valid until the next call. Real-time safe; only
  /// the control thread may call this.
  Dynamics * update() { return handover_.read(); }

private:
  void receive(const Message & message) {
    std::string reason;
    try {
      reason = objection(message);
      if (reason.empty()) return handover_.write(std::make_unique<Dynamics>(model_, message));
    } catch (const std::invalid_argument & error) {
      reason = error.what();
    }
    std::replace_if(reason.begin(), reason.end(), [](unsigned char c) { return std::iscntrl(c); }, '?');
    RCLCPP_ERROR(
      logger_, "parameters %s refused: %s; the last good parameters stay in use",
      std::to_string(message.sequence).c_str(), reason.c_str());
  }

  std::string objection(const Message & message) const {
    const std::string other = message.model_hash.substr(0, 12), own = hash_.substr(0, 12);
    if (message.model_hash != hash_) return "they belong to another robot (model hash " + other + ", here " + own + ")";
    if (message.validation_status > Message::PASSED) return "they did not pass their validation";
    if (message.verdict > Message::USE_WITH_CARE) return "their verdict is 'do not use'";
    if (only_use_ && message.verdict != Message::USE) return "their verdict is not 'use', and only_use is set";
    return "";
  }

  pinocchio::Model model_;
  std::string hash_;
  bool only_use_;
  rclcpp::Logger logger_;
  Handover<Dynamics> handover_;
  std::shared_ptr<void> subscription_;
};

}  // namespace inertid_ros
