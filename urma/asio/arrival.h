// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "urma/core/work.h"

namespace urma::asio {

namespace detail {
class State;
class Arrivals;
}  // namespace detail

// A message that arrived, or the immediate of a write, which has no bytes. The application may use
// the buffer for as long as this object exists. Its destructor, which any thread may call, gives
// the buffer back to the Jetty, for the next message. An Arrival may outlive its Jetty. Move only;
// a default Arrival is empty, and so is one that was moved from.
class Arrival {
 public:
  Arrival() = default;
  Arrival(Arrival&& other) noexcept { *this = std::move(other); }
  Arrival& operator=(Arrival&& other) noexcept {
    std::swap(completion_, other.completion_);
    std::swap(bytes_, other.bytes_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Arrival();

  // Returns the sender, the immediate and the status. The tag of this completion is always 0.
  const Completion& completion() const { return completion_; }
  // Returns the message, which may be changed in place. The span is empty if receiving failed, and
  // for an immediate without a message.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class detail::Arrivals;
  Completion completion_;
  std::span<std::byte> bytes_;
  std::shared_ptr<detail::State> owner_;  // owns the buffer; null if there is none
};

}  // namespace urma::asio
