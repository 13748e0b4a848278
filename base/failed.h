// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "urma/core/endpoint.h"
#include "urma/core/result.h"

namespace urma {
namespace detail {

inline void append(std::string& text, std::string_view part) { text += part; }
inline void append(std::string& text, const Eid& address) { text += to_string(address); }
inline void append(std::string& text, const Endpoint& endpoint) { text += to_string(endpoint); }
template <std::integral Number>
requires(!std::same_as<Number, bool> && !std::same_as<Number, char>) void append(std::string& text,
                                                                                 Number number) {
  text += std::to_string(number);
}

}  // namespace detail

// An Error that lacks its fix. `failed` begins it with what failed and why; `fix` completes it, so
// that an error without an action does not compile:
//
//   return failed(Status::no_resources, call, ": the queue has ", depth, " entries and needs ",
//   more)
//       .fix("make it with ", more, " entries, or poll it");
//
// The message reads "CALL: the queue has ... Fix: make it with ...". Parts are strings, integers,
// addresses and endpoints. Used by control calls that fail, never on the data path, because it
// allocates.
class [[nodiscard]] Failed {
 public:
  explicit Failed(Status status) : error_{status, {}} {}

  // Appends to what failed and why.
  template <class... Parts>
  Failed&& add(const Parts&... parts) && {
    (detail::append(error_.message, parts), ...);
    return std::move(*this);
  }
  // Appends the parts if the condition holds.
  template <class... Parts>
  Failed&& add_if(bool condition, const Parts&... parts) && {
    return condition ? std::move(*this).add(parts...) : std::move(*this);
  }
  // Completes the error with an action that can be typed, without a full stop.
  template <class... Parts>
  Error fix(const Parts&... parts) && {
    return std::move(*this).add(". Fix: ", parts...).error_;
  }
  // Completes the error with the cure that urma/core/status.cc has for this status.
  Error usual_fix() && { return std::move(*this).fix(describe(error_.status).cure); }

 private:
  Error error_;
};

template <class... Parts>
Failed failed(Status status, const Parts&... parts) {
  return Failed(status).add(parts...);
}

}  // namespace urma
