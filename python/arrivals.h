// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "python/queue.h"

namespace urma::python {

// A message, or an immediate that came without one.
struct ArrivalObject {
  py::bytes data;
  Completion value;
};

// The messages and immediates that arrive at a Jetty. They are polled while a thread or a task
// waits for one; the others stay in the library and occupy receive slots, so that their senders
// must wait. A message is copied into an object of Python, and its buffer is posted again at once.
class Arrivals final : public Queue {
 public:
  Arrivals() : Queue("receive") {}

  // Makes the receive queue. Raises urma.Error.
  void open(urma::Device& device, uint32_t receives, uint32_t message_bytes);
  // Returns the receive queue, or null.
  const Jfr* jfr() const { return jfr_ ? &*jfr_ : nullptr; }

  // Takes the next arrival, or raises its failure. Returns None after `limit`.
  py::object take(Duration limit);
  // As above, without a wait.
  py::object take_now();
  void close();

 protected:
  size_t poll(std::span<Completion> out) override { return jfr_->poll(out); }
  std::span<const Completion> sleep(Duration limit) override { return jfr_->wait(limit); }
  bool arm() override { return jfr_->arm(); }
  Result<int> make_descriptor() override { return jfr_->fd(); }
  void settle(const Completion& completion) override;
  void settled() override;

 private:
  void post_receive(uint64_t slot);
  void refuse_if_over() const;

  std::optional<Jfr> jfr_;
  uint32_t message_bytes_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::deque<ArrivalObject> ready_;
};

void define_arrivals(py::module_& module);

}  // namespace urma::python
