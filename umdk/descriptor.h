// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace urma::umdk {

// A file descriptor that is closed with the object.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(int number) : number_(number) {}
  OwnDescriptor(OwnDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnDescriptor() {
    if (number_ >= 0) close(number_);
  }

  static OwnDescriptor event() { return OwnDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
  // A set that is readable while one of the two is.
  static OwnDescriptor either(int one, int other) {
    OwnDescriptor set(epoll_create1(EPOLL_CLOEXEC));
    for (const int member : {one, other}) {
      epoll_event readable{.events = EPOLLIN, .data = {}};
      if (set.number_ < 0 || epoll_ctl(set.number_, EPOLL_CTL_ADD, member, &readable) != 0) {
        return {};
      }
    }
    return set;
  }

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // For an eventfd: makes it readable, and unreadable again.
  void ring() const { (void)!::write(number_, &one_, sizeof one_); }
  void quiet() const {
    uint64_t count = 0;
    (void)!::read(number_, &count, sizeof count);
  }

 private:
  static constexpr uint64_t one_ = 1;
  int number_ = -1;
};

}  // namespace urma::umdk
