// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace urma::apps::feed {

// Cuts a stream of bytes into messages: lines, without their ends, or records of a fixed size.
class Splitter {
 public:
  // `record_bytes` is 0 for lines.
  explicit Splitter(uint64_t record_bytes) : record_bytes_(record_bytes) {}

  void add(std::string_view bytes) { text_ += bytes; }
  // Returns the next message that is complete. Throws a Failure if a line is too long.
  std::optional<std::string> next();
  // Called once all bytes were added, after `next` has returned nothing. Returns the rest as the
  // last message: a line may lack its end. Throws a Failure if a record is incomplete.
  std::optional<std::string> rest();

 private:
  void check_length(uint64_t bytes) const;

  const uint64_t record_bytes_;
  std::string text_;
  size_t begin_ = 0;     // of the next message in it
  size_t searched_ = 0;  // no line ends before this
  uint64_t count_ = 0;   // of the messages that were returned
};

}  // namespace urma::apps::feed
