// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/system/error_code.hpp>
#include <string>

#include "urma/core/status.h"

namespace urma::asio {

namespace detail {

// Returns the generic error condition (POSIX) that corresponds to a status, or an empty one if none
// does.
inline boost::system::error_condition condition_of(Status status) {
  namespace errc = boost::system::errc;
  switch (status) {
    case Status::flushed:
      return errc::make_error_condition(errc::operation_canceled);
    case Status::timed_out:
    case Status::receiver_not_ready:
      return errc::make_error_condition(errc::timed_out);
    case Status::bad_work:
    case Status::invalid_argument:
      return errc::make_error_condition(errc::invalid_argument);
    case Status::remote_access:
    case Status::permission_denied:
      return errc::make_error_condition(errc::permission_denied);
    case Status::remote_unsupported:
    case Status::unsupported:
      return errc::make_error_condition(errc::operation_not_supported);
    case Status::receive_too_small:
      return errc::make_error_condition(errc::message_size);
    case Status::peer_unreachable:
      return errc::make_error_condition(errc::host_unreachable);
    case Status::peer_restarted:
      return errc::make_error_condition(errc::connection_reset);
    case Status::would_block:
      return errc::make_error_condition(errc::operation_would_block);
    case Status::address_in_use:
      return errc::make_error_condition(errc::address_in_use);
    case Status::no_resources:
      return errc::make_error_condition(errc::no_buffer_space);
    case Status::io_error:
      return errc::make_error_condition(errc::io_error);
    default:
      return {};
  }
}

// The error category of Status.
class Category final : public boost::system::error_category {
 public:
  // The identifier is fixed, so that libraries that do not share symbols have the same category.
  constexpr Category() noexcept : error_category(0x75726d6173746174) {}

  const char* name() const noexcept override { return "urma"; }
  std::string message(int value) const override {
    const StatusInfo& info = describe(static_cast<Status>(value));
    return std::string(info.name) + ": " + std::string(info.meaning) +
           " Fix: " + std::string(info.cure);
  }
  boost::system::error_condition default_error_condition(int value) const noexcept override {
    const auto known = condition_of(static_cast<Status>(value));
    return known ? known : boost::system::error_condition(value, *this);
  }
};

}  // namespace detail

// Returns the error category of urma::Status. Its values are those of Status; its messages consist
// of the name, the meaning and the cure (urma/core/status.h). Any thread may call it.
inline const boost::system::error_category& category() noexcept {
  static constexpr detail::Category only;
  return only;
}

}  // namespace urma::asio

namespace urma {

// Converts a Status to an error code, so that `error == urma::Status::flushed` compiles, and also
// `error == boost::system::errc::operation_canceled`.
inline boost::system::error_code make_error_code(Status status) noexcept {
  return {static_cast<int>(status), asio::category()};
}

}  // namespace urma

// Lets a Status convert to boost::system::error_code.
template <>
struct boost::system::is_error_code_enum<urma::Status> : std::true_type {};
