// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace urma::asio {

// Shared ownership of an object that must live for as long as the library borrows memory
// (PostOptions::keep). Made from any shared_ptr; converts to std::shared_ptr<const void>.
//
// It is not a shared_ptr because gcc 12 and older miscompile braced temporaries in coroutines. In
// `co_await f({.keep = buffer})` they construct the member as a temporary of its own, copy its
// bytes into the aggregate, and destroy both: a shared_ptr would release its owner twice. A Keep
// stores the address at which it was constructed. A copy of its bytes has another address, and
// therefore does not own: its destructor has no effect, and objects made from it share the owner
// with the original, which lives as long as the copy does.
class Keep {
 public:
  // Makes a Keep that owns nothing.
  Keep() noexcept : self_(this), owner_() {}
  // Shares the ownership of a shared_ptr of any type.
  template <class Owner>
  requires(!std::is_same_v<std::remove_cvref_t<Owner>, Keep> &&
           std::is_convertible_v<Owner, std::shared_ptr<const void>>) Keep(Owner&& owner)
      : self_(this), owner_(std::forward<Owner>(owner)) {}
  Keep(const Keep& other) noexcept : self_(this), owner_(other.owner_) {}
  Keep(Keep&& other) noexcept : self_(this), owner_(std::move(other).share()) {}
  Keep& operator=(Keep other) noexcept {
    owner_.swap(other.owner_);
    return *this;
  }
  ~Keep() {
    if (self_ == this) owner_.~shared_ptr();
  }

  // Returns the owner; of a temporary Keep, without a copy.
  operator std::shared_ptr<const void>() const& noexcept { return owner_; }
  operator std::shared_ptr<const void>() && noexcept { return std::move(*this).share(); }

 private:
  // Returns the owner, moved out of this object; only copied if this is a copy of another object's
  // bytes.
  std::shared_ptr<const void> share() && noexcept {
    if (self_ != this) return owner_;
    return std::move(owner_);
  }

  const Keep* self_;
  union {
    std::shared_ptr<const void> owner_;
  };
};

}  // namespace urma::asio
