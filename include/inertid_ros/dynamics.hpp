// Torque of a robot from identified parameters, for control loops: the numbers of the Python package in C++17.

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <pinocchio/algorithm/rnea.hpp>

#include <Eigen/Cholesky>

namespace inertid_ros {

namespace detail {

// Position, velocity, acceleration, direction of sliding and torque of the bodies, of every joint.
using Signals = std::array<Eigen::VectorXd, 5>;
inline constexpr std::array<std::string_view, 5> kSignals = {"q", "v", "a", "direction", "load"};

// Direction of sliding, from -1 to 1; the sign of the velocity if the transition speed is zero.
inline double direction(double velocity, double transition_speed) {
  if (transition_speed > 0) return std::tanh(velocity / transition_speed);
  return velocity > 0 ? 1.0 : velocity < 0 ? -1.0 : velocity;
}

using Operands = const double *;
struct Operation {
  std::string_view name;
  int operands;
  double (*value)(Operands);
  int precedence = 0;  // of an operator: sums 1, products 2, signs 3, powers 4
};
inline constexpr std::array<Operation, 5> kOperators = {{
  {"**", 2, [](Operands x) { return std::pow(x[0], x[1]); }, 4},
  {"*", 2, [](Operands x) { return x[0] * x[1]; }, 2}, {"/", 2, [](Operands x) { return x[0] / x[1]; }, 2},
  {"+", 2, [](Operands x) { return x[0] + x[1]; }, 1}, {"-", 2, [](Operands x) { return x[0] - x[1]; }, 1}}};
inline constexpr std::array<Operation, 11> kFunctions = {{
  {"sin", 1, [](Operands x) { return std::sin(*x); }}, {"cos", 1, [](Operands x) { return std::cos(*x); }},
  {"tan", 1, [](Operands x) { return std::tan(*x); }}, {"tanh", 1, [](Operands x) { return std::tanh(*x); }},
  {"exp", 1, [](Operands x) { return std::exp(*x); }}, {"log", 1, [](Operands x) { return std::log(*x); }},
  {"abs", 1, [](Operands x) { return std::abs(*x); }}, {"sqrt", 1, [](Operands x) { return std::sqrt(*x); }},
  {"sign", 1, [](Operands x) { return direction(*x, 0.0); }},
  {"min", 2, [](Operands x) { return std::isnan(x[0]) || x[0] < x[1] ? x[0] : x[1]; }},
  {"max", 2, [](Operands x) { return std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1]; }}}};

// Step of a stack machine: an operation, a signal of a joint, or a number.
struct Step {
  int operands = 0;
  double (*value)(Operands) = nullptr;
  std::size_t signal = kSignals.size(), joint = 0;
  double number = 0.0;
};

inline constexpr std::size_t kMaxLength = 4000;  // characters of a formula, and so a bound on its stack

inline double evaluate(const std::vector<Step> & formula, const Signals & signals) {
  std::array<double, kMaxLength> stack;
  double * top = stack.data();  // behind the last value
  for (const Step & step : formula) {
    top -= step.operands;
    *top = step.value ? step.value(top) : step.signal < signals.size() ? signals[step.signal][step.joint] : step.number;
    ++top;
  }
  return stack[0];
}

// Turns the formula of a user term into steps, by the precedences of Python.
class Parser {
public:
  Parser(std::string_view text, std::size_t joint, const std::vector<std::string> & joints)
  : text_(text), rest_(text), joint_(joint), joints_(joints) {
    require(text.size() <= kMaxLength);
    expression(1);
    require(take("") && rest_.empty());
  }

  std::vector<Step> steps;

private:
  void require(bool valid) const {
    if (!valid) throw std::invalid_argument("a term '" + std::string(text_) + "' is not a formula of its signals");
  }

  bool take(std::string_view symbol) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    const bool found = rest_.substr(0, symbol.size()) == symbol;
    rest_.remove_prefix(found ? symbol.size() : 0);
    return found;
  }

  void expression(int precedence) {
    if (take("-")) expression(3), steps.push_back({1, [](Operands x) { return -*x; }});
    else take("+") ? expression(3) : operand();
    const auto follows = [&](const Operation & known) { return known.precedence >= precedence && take(known.name); };
    for (;;) {
      const auto found = std::find_if(kOperators.begin(), kOperators.end(), follows);
      if (found == kOperators.end()) return;
      expression(std::min(found->precedence + 1, 3));  // a power is right-associative, and its exponent has a sign
      steps.push_back({2, found->value});
    }
  }

  void operand() {
    if (take("(")) return expression(1), require(take(")"));
    Step step{0, nullptr, kSignals.size(), joint_};
    const auto name = rest_.substr(0, rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
    const auto named = [&](const Operation & known) { return known.name == name; };
    const auto function = std::find_if(kFunctions.begin(), kFunctions.end(), named);
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), step.number);
    rest_.remove_prefix(name.empty() ? end - rest_.data() : name.size());
    if (function != kFunctions.end()) {
      for (int i = 0; i < function->operands; ++i) require(take(i == 0 ? "(" : ",")), expression(1);
      require(take(")"));
      step.operands = function->operands, step.value = function->value;
    } else if (name == "pi") {
      step.number = M_PI;
    } else if (name.empty()) {
      require(error == std::errc() && step.number >= 0 && step.number <= 1e300);
    } else {
      step.signal = std::find(kSignals.begin(), kSignals.end(), name) - kSignals.begin();
      require(step.signal < kSignals.size());
      if (take("[")) {
        require(take("\"") || take("'"));
        const auto other = rest_.substr(0, rest_.find(rest_.data()[-1]));
        step.joint = std::find(joints_.begin(), joints_.end(), other) - joints_.begin();
        require(other.size() < rest_.size() && step.joint < joints_.size());
        rest_.remove_prefix(other.size() + 1);
        require(take("]"));
      }
    }
    steps.push_back(step);
  }

  std::string_view text_, rest_;
  std::size_t joint_;
  const std::vector<std::string> & joints_;
};

}  // namespace detail

/// Torque of a robot with the parameters of an ``inertid_ros/msg/InertialParameters``.
///
/// Only the constructor allocates memory. Vectors have Pinocchio's order and size (``nq``, ``nv``) and SI units;
/// returned references stay valid until the next call. The six rows of a free base have no drive.
class Dynamics {
public:
  /// Throws std::invalid_argument, with the reason, if the parameters are of other joints or no real robot can have
  /// them: bodies that are not physically consistent, impossible drives, formulas that cannot be computed, or torque
  /// that is not finite or beyond 1e6 N m in the range of the joints.
  ///
  /// @param model from the URDF that was calibrated, with the same joints locked; its inertias are replaced
  template <class Message>
  Dynamics(const pinocchio::Model & model, const Message & message)
  : model_(model), data_(model), base_(model.njoints > 1 && model.nvs[1] == 6 ? 6 : 0),
    joints_(model.names.begin() + (base_ ? 2 : 1), model.names.end()), q_(model.nq), v_(model.nv), a_(model.nv),
    tau_(model.nv), friction_(Eigen::VectorXd::Zero(model.nv)), offset_(friction_),
    stiffness_(Eigen::VectorXd::Zero(joints_.size())), transition_speed_(stiffness_) {
    model_.armature.setZero();  // the message has the rotors
    signals_.fill(stiffness_);
    const auto same = [](const std::string & name, const auto & joint) { return joint.name == name; };
    require(
      std::equal(joints_.begin(), joints_.end(), message.joints.begin(), message.joints.end(), same) &&
      message.links.size() + 1 == model.inertias.size() && base_ + joints_.size() == std::size_t(model.nv),
      "their links or joints differ from this robot's");
    set_bodies(message);
    set_drives(message);
    for (const auto & term : message.terms) {
      const std::size_t joint = index_of(term.joint);
      require(term.values.size() == term.expressions.size(), "term '" + term.name + "' has a wrong number of values");
      for (std::size_t i = 0; i < term.values.size(); ++i)
        terms_.push_back({joint, term.values[i], detail::Parser(term.expressions[i], joint, joints_).steps});
    }
    require(terms_.size() <= kMaxFormulas, "their terms have too many formulas");
    check_corners();
  }

  /// Torque of bodies, rotors, friction, stiffness and user terms, without the offset of the sensors.
  template <class Q, class V, class A>
  const Eigen::VectorXd & inverse_dynamics(
    const Eigen::MatrixBase<Q> & q, const Eigen::MatrixBase<V> & v, const Eigen::MatrixBase<A> & a) {
    q_ = q, v_ = v, a_ = a;
    tau_ = pinocchio::rnea(model_, data_, q_, v_, a_);
    for (std::size_t i = 0; i < joints_.size(); ++i) {
      signals_[0][i] = is_circle(i) ? std::atan2(q_[position(i) + 1], q_[position(i)]) : q_[position(i)];
      signals_[3][i] = terms_.empty() ? 0.0 : detail::direction(v_[base_ + i], transition_speed_[i]);
    }
    signals_[1] = v_.tail(joints_.size()), signals_[2] = a_.tail(joints_.size());
    signals_[4] = tau_.tail(joints_.size());
    tau_ += friction(v_);
    tau_.tail(joints_.size()) += stiffness_.cwiseProduct(signals_[0]);
    for (const Drive & drive : drives_)
      tau_.tail(joints_.size()) += drive.rotor_inertia * drive.ratios.dot(signals_[2]) * drive.ratios;
    for (const Term & term : terms_) tau_[base_ + term.joint] += term.value * detail::evaluate(term.formula, signals_);
    return tau_;
  }

  /// Torque of the bodies' weight.
  template <class Q>
  const Eigen::VectorXd & gravity(const Eigen::MatrixBase<Q> & q) {
    q_ = q;
    return pinocchio::computeGeneralizedGravity(model_, data_, q_);
  }

  /// Torque against viscous, Coulomb and Stribeck friction of joints and coupled drives.
  template <class V>
  const Eigen::VectorXd & friction(const Eigen::MatrixBase<V> & v) {
    friction_.setZero();
    for (const Drive & drive : drives_) {
      const double speed = drive.ratios.dot(v.tail(joints_.size()));
      const double slow = drive.stribeck > 0 ? drive.stribeck * std::exp(-std::abs(speed) / drive.stribeck_speed) : 0.0;
      const double dry = (drive.coulomb + slow) * detail::direction(speed, drive.transition_speed);
      friction_.tail(joints_.size()) += (drive.viscous * speed + dry) * drive.ratios;
    }
    return friction_;
  }

  /// Constant torque that sensors show in addition to the torque of the robot.
  const Eigen::VectorXd & offset() const { return offset_; }

private:
  struct Drive {  // of a joint or a coupling
    Eigen::VectorXd ratios;
    double transition_speed, rotor_inertia, viscous, coulomb, stribeck, stribeck_speed;
  };
  struct Term {
    std::size_t joint;
    double value;
    std::vector<detail::Step> formula;
  };
  static constexpr std::size_t kMaxFormulas = 200, kCorners = 200, kMaxTorque = 1000000;  // N m or N

  static void require(bool valid, const std::string & reason) {
    if (!valid) throw std::invalid_argument(reason);
  }

  // Index in q of a joint, and whether cosine and sine are there, as Pinocchio has them for continuous joints.
  int position(std::size_t joint) const { return model_.idx_qs[model_.njoints - joints_.size() + joint]; }
  bool is_circle(std::size_t joint) const { return model_.nqs[model_.njoints - joints_.size() + joint] == 2; }

  std::size_t index_of(const std::string & name) const {
    const auto joint = std::find(joints_.begin(), joints_.end(), name);
    require(joint != joints_.end(), "they name a joint '" + name + "', which does not exist");
    return joint - joints_.begin();
  }

  template <class Message>
  void set_bodies(const Message & message) {
    for (std::size_t i = 0; i < message.links.size(); ++i) {
      const auto & link = message.links[i];
      const auto & [xx, xy, xz, yy, yz, zz] = link.inertia;
      const Eigen::Vector3d com(link.com.x, link.com.y, link.com.z);
      const Eigen::Matrix3d inertia = (Eigen::Matrix3d() << xx, xy, xz, xy, yy, yz, xz, yz, zz).finished();
      const Eigen::Matrix3d moments = inertia.trace() / 2 * Eigen::Matrix3d::Identity() - inertia;
      require(
        link.mass > 0 && std::isfinite(link.mass) && com.allFinite() && inertia.allFinite() &&
        moments.llt().info() == Eigen::Success, "link '" + link.name + "' is not physically consistent");
      model_.inertias[i + 1] = pinocchio::Inertia(link.mass, com, inertia);
    }
  }

  template <class Message>
  void set_drives(const Message & message) {
    for (std::size_t i = 0; i < joints_.size(); ++i) {
      const auto & joint = message.joints[i];
      offset_[base_ + i] = joint.offset, stiffness_[i] = joint.stiffness, transition_speed_[i] = joint.transition_speed;
      require(std::isfinite(joint.offset) && joint.stiffness >= 0 && std::isfinite(joint.stiffness) &&
        joint.transition_speed >= 0 && joint.stribeck_speed > 0, "'" + joint.name + "' has an impossible value");
      add_drive(joint, Eigen::VectorXd::Unit(joints_.size(), i), joint.stribeck, joint.stribeck_speed);
    }
    for (const auto & coupling : message.couplings) {
      Eigen::VectorXd ratios = Eigen::VectorXd::Zero(joints_.size());
      const auto & names = coupling.joints;
      require(names.size() == coupling.ratios.size(), "'" + coupling.name + "' has a wrong number of ratios");
      for (std::size_t i = 0; i < names.size(); ++i) {
        require(std::count(names.begin(), names.end(), names[i]) == 1, "'" + coupling.name + "' repeats a joint");
        ratios[index_of(names[i])] = coupling.ratios[i];
      }
      add_drive(coupling, ratios);
    }
  }

  template <class Message>
  void add_drive(const Message & given, const Eigen::VectorXd & ratios, double stribeck = 0, double speed = 1) {
    const double transition_speed = ratios.cwiseProduct(transition_speed_).norm();
    const Eigen::Vector4d terms(given.rotor_inertia, given.viscous, given.coulomb, stribeck);
    const bool finite = terms.allFinite() && ratios.allFinite() && std::isfinite(speed + transition_speed);
    require(finite && (terms.array() >= 0).all(), "'" + given.name + "' has an impossible value");
    drives_.push_back({ratios, transition_speed, terms[0], terms[1], terms[2], stribeck, speed});
  }

  // Refuse torque that is not finite or impossibly large, at rest and at random corners of the joints' range.
  void check_corners() {
    auto draw = [random = std::minstd_rand()]() mutable { return static_cast<int>(random() % 3) - 1; };
    Eigen::VectorXd q = Eigen::VectorXd::Zero(model_.nq), v = Eigen::VectorXd::Zero(model_.nv), a = v;
    if (base_) q[6] = 1.0;  // quaternion
    for (std::size_t corner = 0; corner < kCorners; ++corner) {
      for (std::size_t i = 0; i < joints_.size(); ++i) {
        const int at = position(i);
        const double x = M_PI * draw(), lower = model_.lowerPositionLimit[at], upper = model_.upperPositionLimit[at];
        q[at + is_circle(i)] = std::sin(x);
        q[at] = is_circle(i) ? std::cos(x) : std::min(std::max(x, lower), upper);
        v[base_ + i] = corner ? draw() : 0, a[base_ + i] = corner ? draw() : 0;
      }
      inverse_dynamics(q, v, a);
      for (std::size_t i = 0; i < joints_.size(); ++i)
        require(std::abs(tau_[base_ + i]) <= kMaxTorque,
          "their torque at '" + joints_[i] + "' is not finite or impossibly large in the joint's range");
    }
  }

  pinocchio::Model model_;
  pinocchio::Data data_;
  std::size_t base_;  // velocities of a free base
  std::vector<std::string> joints_;
  Eigen::VectorXd q_, v_, a_, tau_, friction_, offset_, stiffness_, transition_speed_;
  detail::Signals signals_;
  std::vector<Drive> drives_;
  std::vector<Term> terms_;
};

}  // namespace inertid_ros
