// Real-time hand-over of objects between two threads: a lock-free triple buffer.

#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <utility>

namespace inertid_ros {

/// Hands the newest object of one writing thread to one reading thread. No thread waits for the other.
///
/// The reader owns its object until it takes a newer one, so it never sees a half-written object. The writer frees the
/// objects that the reader has left, so the reader neither allocates nor frees memory.
template <class T>
class Handover {
public:
  /// Offer an object in place of an earlier one that was not taken. For the writing thread.
  void write(std::unique_ptr<T> object) {
    slots_[back_] = std::move(object);
    back_ = middle_.exchange(back_ | kNew, std::memory_order_acq_rel) & kSlot;
  }

  /// Take the newest object, or nullptr before the first; it stays valid until the next call. For the reading thread.
  T * read() {
    if (middle_.load(std::memory_order_relaxed) & kNew)
      front_ = middle_.exchange(front_, std::memory_order_acq_rel) & kSlot;
    return slots_[front_].get();
  }

private:
  static constexpr unsigned kSlot = 3, kNew = 4;  // index of a slot; whether its object was not taken yet
  static_assert(std::atomic<unsigned>::is_always_lock_free);

  std::array<std::unique_ptr<T>, 3> slots_;
  unsigned back_ = 0, front_ = 2;  // slots of writer and reader
  std::atomic<unsigned> middle_{1};
};

}  // namespace inertid_ros
