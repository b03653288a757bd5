// Reads robots, their InertialParameters and states from stdin, as support/cpp.py writes them, and prints torques.
//
// A control step may not allocate: malloc and free count their calls while a step runs.

#include <chrono>
#include <cstdio>
#include <functional>
#include <iomanip>
#include <iostream>

#include <inertid_ros/parameter_subscriber.hpp>

extern "C" void * __libc_malloc(std::size_t);
extern "C" void __libc_free(void *);

constexpr std::size_t kBlock = 50;  // states whose time is measured at once; the median leaves interruptions out

static bool in_step = false;
static long allocations = 0;

extern "C" void * malloc(std::size_t size) {
  allocations += in_step;
  return __libc_malloc(size);
}

extern "C" void free(void * memory) {
  allocations += in_step && memory != nullptr;
  __libc_free(memory);
}

using inertid_ros::msg::InertialParameters;

struct Node {
  rclcpp::Logger get_logger() { return {}; }

  template <class Message, class Callback>
  std::shared_ptr<int> create_subscription(const std::string & topic, const rclcpp::QoS & qos, Callback callback) {
    if (topic != "identifier/parameters" || qos.depth != 1 || !qos.is_reliable || !qos.is_latched) std::abort();
    publish = callback;
    return std::make_shared<int>(0);
  }

  std::function<void(const InertialParameters &)> publish;
};

template <class T>
T next() {
  T value;
  if constexpr (std::is_same_v<T, std::string>) {
    std::cin >> std::quoted(value);
  } else {
    std::cin >> value;
  }
  return value;
}

static Eigen::VectorXd vector(Eigen::Index size) {
  Eigen::VectorXd values(size);
  for (double & value : values) value = std::stod(next<std::string>());  // streams do not read inf and nan
  return values;
}

static pinocchio::Model read_model() {
  pinocchio::Model model;
  for (int joints = next<int>(); joints > 0; --joints) {
    const auto name = next<std::string>(), kind = next<std::string>();
    const auto parent = next<pinocchio::JointIndex>();
    const Eigen::Vector3d axis = vector(3), translation = vector(3);
    const Eigen::VectorXd rows = vector(9), limits = vector(2);
    const pinocchio::SE3 placement(Eigen::Map<const Eigen::Matrix3d>(rows.data()).transpose(), translation);
    pinocchio::JointIndex joint = 0;
    if (kind == "free") joint = model.addJoint(parent, pinocchio::JointModelFreeFlyer(), placement, name);
    if (kind == "revolute")
      joint = model.addJoint(parent, pinocchio::JointModelRevoluteUnaligned(axis), placement, name);
    if (kind == "prismatic")
      joint = model.addJoint(parent, pinocchio::JointModelPrismaticUnaligned(axis), placement, name);
    if (kind == "continuous")
      joint = model.addJoint(parent, pinocchio::JointModelRevoluteUnboundedUnaligned(axis), placement, name);
    if (kind != "free" && kind != "continuous") {
      model.lowerPositionLimit[model.idx_qs[joint]] = limits[0];
      model.upperPositionLimit[model.idx_qs[joint]] = limits[1];
    }
  }
  model.gravity.linear() = vector(3);
  return model;
}

static InertialParameters read_parameters() {
  InertialParameters message;
  message.model_hash = next<std::string>();
  message.verdict = next<int>(), message.validation_status = next<int>();
  message.links.resize(next<int>());
  for (auto & link : message.links) {
    link.name = next<std::string>();
    const Eigen::VectorXd values = vector(10);
    link.mass = values[0], link.com.x = values[1], link.com.y = values[2], link.com.z = values[3];
    std::copy_n(values.data() + 4, 6, link.inertia.begin());
  }
  message.joints.resize(next<int>());
  for (auto & joint : message.joints) {
    joint.name = next<std::string>();
    const Eigen::VectorXd values = vector(8);
    joint.rotor_inertia = values[0], joint.viscous = values[1], joint.coulomb = values[2], joint.offset = values[3];
    joint.stiffness = values[4], joint.stribeck = values[5], joint.stribeck_speed = values[6];
    joint.transition_speed = values[7];
  }
  message.couplings.resize(next<int>());
  for (auto & coupling : message.couplings) {
    coupling.name = next<std::string>();
    for (int joints = next<int>(); joints > 0; --joints) coupling.joints.push_back(next<std::string>());
    for (int ratios = next<int>(); ratios > 0; --ratios) coupling.ratios.push_back(vector(1)[0]);
    const Eigen::VectorXd values = vector(3);
    coupling.rotor_inertia = values[0], coupling.viscous = values[1], coupling.coulomb = values[2];
  }
  message.terms.resize(next<int>());
  for (auto & term : message.terms) {
    term.name = next<std::string>(), term.joint = next<std::string>();
    for (int texts = next<int>(); texts > 0; --texts) term.expressions.push_back(next<std::string>());
    for (int values = next<int>(); values > 0; --values) term.values.push_back(vector(1)[0]);
  }
  return message;
}

static void print(const Eigen::VectorXd & values) {
  for (const double value : values) std::printf("%.17g ", value);
}

int main() {
  in_step = true;
  Eigen::VectorXd::Ones(100).eval();
  in_step = false;
  if (allocations < 2) return std::puts("allocations are not counted"), 1;
  allocations = 0;
  for (int robots = next<int>(); robots > 0; --robots) {
    const pinocchio::Model model = read_model();
    const std::string hash = next<std::string>();
    const bool only_use = next<int>();
    Node node;
    inertid_ros::ParameterSubscriber<Node> subscriber(node, model, hash, "identifier/parameters", only_use);
    node.publish(read_parameters());
    std::vector<std::array<Eigen::VectorXd, 3>> states(next<int>());
    for (auto & [q, v, a] : states) q = vector(model.nq), v = vector(model.nv), a = vector(model.nv);
    inertid_ros::Dynamics * dynamics = subscriber.update();
    if (dynamics == nullptr) continue;
    std::vector<std::array<Eigen::VectorXd, 3>> torques(states.size());
    for (auto & torque : torques) torque.fill(Eigen::VectorXd::Zero(model.nv));
    std::vector<double> seconds(std::max(states.size() / kBlock, std::size_t(1)));
    in_step = true;
    for (std::size_t block = 0; block < seconds.size(); ++block) {
      const std::size_t end = std::min((block + 1) * kBlock, states.size());
      const auto started = std::chrono::steady_clock::now();
      for (std::size_t i = block * kBlock; i < end; ++i) {
        dynamics->inverse_dynamics(states[i][0], states[i][1], states[i][2]);
      }
      seconds[block] = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() / kBlock;
    }
    in_step = false;
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    in_step = true;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const auto & [q, v, a] = states[i];
      dynamics = subscriber.update();
      torques[i][0] = dynamics->inverse_dynamics(q, v, a) + dynamics->offset();
      torques[i][1] = dynamics->gravity(q);
      torques[i][2] = dynamics->friction(v);
    }
    in_step = false;
    std::printf("%zu states, %g s, %ld allocations\n", states.size(), seconds[seconds.size() / 2], allocations);
    for (const auto & torque : torques) {
      for (const auto & part : torque) print(part);
      std::printf("\n");
    }
  }
}
