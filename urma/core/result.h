// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

#include "urma/core/error_code.h"
#include "urma/core/status.h"

namespace urma {

// The reason why a call failed.
struct Error {
  Status status = Status::io_error;  // for programs
  std::string message;               // for people: what failed, why, and after "Fix: " what to do

  // For code that handles errors of several libraries. The message is lost.
  operator std::error_code() const { return code_of(status); }
};

// Returns an Error whose message consists of `what_and_why`, ". Fix: " and the cure of the status.
[[nodiscard]] inline Error error(Status status, std::string what_and_why) {
  what_and_why += ". Fix: ";
  what_and_why += describe(status).cure;
  return {status, std::move(what_and_why)};
}

#if defined(__cpp_exceptions)
// `Result::value` throws this if there is no value. Its text is the name of the status and the
// message.
class Exception : public std::runtime_error {
 public:
  // Makes the exception for an error.
  explicit Exception(Error error)
      : std::runtime_error(std::string(name(error.status)) + ": " + error.message),
        error_(std::move(error)) {}

  // These return the status of the error, and the error itself.
  Status status() const { return error_.status; }
  const Error& error() const { return error_; }

 private:
  Error error_;
};
#endif

namespace detail {
[[noreturn]] inline void no_value(const Error& error) {
#if defined(__cpp_exceptions)
  throw Exception(error);
#else
  std::fprintf(stderr, "%s: %s\n", name(error.status).data(), error.message.c_str());
  std::abort();
#endif
}
}  // namespace detail

// A value, or the reason why there is none. Check ok(), or call value(), which throws if there is
// no value.
template <class T>
class [[nodiscard]] Result {
 public:
  // Makes a result from a value, or from the reason why there is none: a function with this result
  // type says `return value;` or `return error;`.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  // Returns whether there is a value.
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Returns Status::ok, or the status of the error.
  Status status() const { return ok() ? Status::ok : error().status; }

  // Returns the value. If there is none, throws Exception; in a program built without exceptions,
  // prints the text of the exception to stderr and aborts.
  T& value() & { return ok() ? *std::get_if<0>(&state_) : (detail::no_value(error()), **this); }
  const T& value() const& {
    return ok() ? *std::get_if<0>(&state_) : (detail::no_value(error()), **this);
  }
  T&& value() && { return std::move(value()); }

  // These return the value, without a check: calling them is undefined behaviour unless ok() is
  // true. Calling `error` is undefined behaviour unless ok() is false.
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

// Success, or the reason for a failure.
template <>
class [[nodiscard]] Result<void> {
 public:
  // Makes a success, or a failure with its reason.
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  // Returns whether the call succeeded.
  bool ok() const { return error_.status == Status::ok; }
  explicit operator bool() const { return ok(); }
  // Returns Status::ok, or the status of the error.
  Status status() const { return error_.status; }
  // Does nothing after a success; otherwise as `value` of the other results.
  void value() const {
    if (!ok()) detail::no_value(error_);
  }
  // Returns the error; after a success, one with Status::ok and an empty message.
  const Error& error() const { return error_; }

 private:
  Error error_{Status::ok, {}};
};

}  // namespace urma
