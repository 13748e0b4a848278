// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/splitter.h"

#include <fmt/format.h>

#include <utility>

#include "apps/common/failure.h"
#include "apps/urma_feed/messages.h"

namespace urma::apps::feed {

void Splitter::check_length(uint64_t bytes) const {
  if (bytes <= most_payload_bytes) return;
  throw Failure(Exit::error,
                fmt::format("line {} of standard input is longer than {} bytes; it was not sent, "
                            "and nothing after it. Fix: cut it (fold -b), or send the file: "
                            "urma_notify send FILE",
                            count_ + 1, most_payload_bytes));
}

std::optional<std::string> Splitter::next() {
  size_t end = begin_ + record_bytes_;
  size_t skipped = 0;
  if (record_bytes_ == 0) {
    end = text_.find('\n', searched_);
    check_length((end == text_.npos ? text_.size() : end) - begin_);
    skipped = 1;
  }
  if (end == text_.npos || end > text_.size()) {
    text_.erase(0, std::exchange(begin_, 0));
    searched_ = text_.size();
    return std::nullopt;
  }
  std::string message = text_.substr(begin_, end - begin_);
  begin_ = searched_ = end + skipped;
  ++count_;
  return message;
}

std::optional<std::string> Splitter::rest() {
  if (text_.empty()) return std::nullopt;
  if (record_bytes_ > 0) {
    throw Failure(Exit::error,
                  fmt::format("standard input ends within a record: {} of {} bytes; they were not "
                              "sent. Fix: give the size of the records with --records",
                              text_.size(), record_bytes_));
  }
  return std::exchange(text_, {});
}

}  // namespace urma::apps::feed
