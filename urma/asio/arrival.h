#pragma once

#include <memory>
#include <span>
#include <utility>

#include "urma/core/work.h"

namespace urma::asio {

namespace detail {
class State;
}

// A message, or what a write's immediate tells of (then without bytes). While it lives, its buffer
// is the application's; destroyed, by any thread, it lets the next message in. It may outlive its
// Jetty. Move only; a default one, and one moved from, is empty.
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

  // Whose it is, its immediate, and how it ended.
  const Completion& completion() const { return completion_; }
  // The message; it may be changed in place.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class detail::State;
  Completion completion_;
  std::span<std::byte> bytes_;
  std::shared_ptr<detail::State> owner_;  // of the buffer; null if there is none
};

}  // namespace urma::asio
