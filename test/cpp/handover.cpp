// One thread writes objects of equal numbers, for a second at 1 kHz and then as fast as it can; another reads them.

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <inertid_ros/handover.hpp>

constexpr long kAtRate = 1000, kLast = 101000;

int main() {
  inertid_ros::Handover<std::vector<long>> handover;
  std::thread writer([&] {
    auto next = std::chrono::steady_clock::now();
    for (long number = 1; number <= kLast; ++number) {
      handover.write(std::make_unique<std::vector<long>>(100, number));
      if (number <= kAtRate) std::this_thread::sleep_until(next += std::chrono::milliseconds(1));
    }
  });
  long last = 0, taken = 0;
  while (last < kLast) {
    const std::vector<long> * numbers = handover.read();
    if (numbers == nullptr) continue;
    const long first = numbers->front();
    for (const long number : *numbers)
      if (number != first) return std::puts("torn"), 1;
    if (first < last) return std::puts("older than before"), 1;
    taken += first > last;
    last = first;
  }
  writer.join();
  std::printf("%ld taken\n", taken);
  return taken < 2;
}
