#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

#include "urma/core/status.h"

namespace urma {

// Why a call refused: the status for programs, a sentence for people (what failed, why, the fix).
struct Error {
  Status status = Status::io_error;
  std::string message;
};

// An Error whose message ends with the status's own cure.
inline Error error(Status status, std::string what_and_why) {
  what_and_why += ". Fix: ";
  what_and_why += describe(status).cure;
  return {status, std::move(what_and_why)};
}

namespace detail {
[[noreturn]] inline void no_value(const Error& error) {
#if defined(__cpp_exceptions)
  throw std::runtime_error(std::string(name(error.status)) + ": " + error.message);
#else
  std::fprintf(stderr, "%s: %s\n", name(error.status).data(), error.message.c_str());
  std::abort();
#endif
}
}  // namespace detail

// A value, or the reason why there is none. Nothing in this library throws; `value()` on an error
// is the caller's choice to have an exception (or, built without exceptions, to end).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Status status() const { return ok() ? Status::ok : error().status; }

  T& value() & { return ok() ? *std::get_if<0>(&state_) : (detail::no_value(error()), **this); }
  const T& value() const& {
    return ok() ? *std::get_if<0>(&state_) : (detail::no_value(error()), **this);
  }
  T&& value() && { return std::move(value()); }

  // Only after ok() was seen to be true (false for `error`).
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return error_.status == Status::ok; }
  explicit operator bool() const { return ok(); }
  Status status() const { return error_.status; }
  void value() const {
    if (!ok()) detail::no_value(error_);
  }
  const Error& error() const { return error_; }

 private:
  Error error_{Status::ok, {}};
};

}  // namespace urma
