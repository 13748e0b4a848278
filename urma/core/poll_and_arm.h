// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "urma/core/options.h"
#include "urma/core/work.h"

namespace urma {

// The state in which poll_and_arm leaves a queue.
enum class Armed : uint8_t {
  // The queue is empty and armed: sleep at its descriptor, or at that of its Jfce.
  yes,
  // `most` completions were handled, and there may be more. Call poll_and_arm again before
  // sleeping.
  not_empty,
  // The queue is empty and cannot be armed: it has no descriptor and is attached to no Jfce. Call
  // its `fd`, or Jfce::attach, before.
  no_descriptor,
  // No completions will follow, since the device is closed or this is a child of fork(). The last
  // completion that was handled has Status::closed or Status::forked.
  ended,
};

// Options of poll_and_arm.
struct ArmOptions {
  Wake wake = Wake::any;   // what makes the descriptor readable (Jetty::arm)
  size_t most = SIZE_MAX;  // how many completions are handled, so that other queues get their turn
};

// Polls a Jetty, Jfr or Jfc until it is empty, calls handle(const Completion&) for each completion,
// and arms the queue: the step that a thread makes before it sleeps at descriptors.
//
//   const int descriptor = jetty.fd().value();
//   while (poll_and_arm(jetty, handle) == urma::Armed::yes) {
//     poll or epoll_wait at `descriptor`, with a time-out or not
//   }
//
// A completion may arrive between the last `poll` and `arm`. A loop that then sleeps although `arm`
// has returned false, or that does not poll until the queue is empty, may sleep for ever. This
// function has no such race. For queues at a Jfce, call it once for each queue after `attach`, and
// then for each queue that Jfce::wait or Jfce::take reports.
//
// Each completion is polled immediately before it is handled. So `handle` may post works and
// receives to the Jetty, may poll the queue, and may throw: no completion is lost, and the queue is
// not armed then. Called by the thread that polls the queue; neither blocks nor allocates.
template <class Queue, class Handle>
[[nodiscard]] Armed poll_and_arm(Queue& queue, Handle&& handle, const ArmOptions& options = {}) {
  Completion next;
  size_t handled = 0;
  // After a refusal to arm, there is a completion, or else no way to arm the queue.
  for (bool refused = false;; refused = true) {
    bool any = false;
    for (; handled < options.most && queue.poll(std::span(&next, 1)) > 0; ++handled, any = true) {
      const bool last = next.status == Status::closed || next.status == Status::forked;
      handle(static_cast<const Completion&>(next));
      if (last) return Armed::ended;
    }
    if (handled >= options.most) return Armed::not_empty;
    if (refused && !any) return Armed::no_descriptor;
    if (queue.arm(options.wake)) return Armed::yes;
  }
}

}  // namespace urma
