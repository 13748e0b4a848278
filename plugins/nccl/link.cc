// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/link.h"

#include "base/clock.h"
#include "plugins/nccl/board.h"
#include "plugins/nccl/log.h"

namespace urma::nccl {
namespace {

// Returns how NCCL names the failure: of this process, of a call, or of the peer.
Code result_of(Status status) {
  switch (status) {
    case Status::closed:
    case Status::forked:
    case Status::no_resources:
    case Status::io_error:
    case Status::permission_denied:
      return Code::system_error;
    case Status::bad_work:
    case Status::invalid_argument:
      return Code::internal_error;
    default:
      return Code::remote_error;
  }
}

}  // namespace

Link::Link(SessionRef session, const char* what, Jetty jetty)
    : session_(std::move(session)),
      what_(what),
      jetty_(std::move(jetty)),
      patience_(session_->settings.timeout / 4) {}

void Link::join(const Imported& peer, const Work& probe) {
  peer_ = peer;
  probe_ = probe;
  probe_.tag(probe_tag);
  direct_ = stores_keep_order && peer.segment.mapped();
  const auto there = session_->device.endpoint(peer.jetty.peer);
  if (there) where_ = to_string(*there);
}

void Link::fail(Status status, const char* doing) {
  if (failed()) return;
  code_ = result_of(status);
  const StatusInfo& why = describe(status);
  const std::string_view cure = code_ == Code::remote_error
                                    ? "look why the rank there ended, in its log; if it was only "
                                      "stopped for a while, raise URMA_NCCL_TIMEOUT"
                                    : why.cure;
  warn("the %s with the peer at %s fails: %s: %.*s (%.*s) Fix: %.*s", what_, where_.c_str(), doing,
       static_cast<int>(why.name.size()), why.name.data(), static_cast<int>(why.meaning.size()),
       why.meaning.data(), static_cast<int>(cure.size()), cure.data());
}

bool Link::post(const Work& work, const char* doing) {
  if (jetty_.post(work) == 1) return true;
  // There are berths for all requests of NCCL, so the device is closed.
  fail(Status::closed, doing);
  return false;
}

bool Link::post(Work& write, uint64_t word_at, uint64_t value, const char* doing) {
  // If the write is a copy, the word can be one, too; otherwise a notification follows the data.
  if (!direct_) return post(write.notify(peer_.segment, word_at, value), doing);
  const auto word = std::as_bytes(std::span(&value, 1));
  const std::array both = {
      write.unsignalled(),
      urma::write(word, peer_.segment, word_at).inline_data().fenced().tag(write.tag_value)};
  if (jetty_.post(both) == both.size()) return true;
  fail(Status::closed, doing);
  return false;
}

bool Link::is_own(const Completion& done) {
  // A closed device, or a child of fork, has one completion for each poll.
  if (done.status == Status::closed || done.status == Status::forked) {
    fail(done.status, "polling");
    return true;
  }
  if (done.tag != probe_tag) return false;
  probing_ = false;
  if (!done.ok()) fail(done.status, "the peer does not answer");
  heard();
  return true;
}

void Link::wait() {
  const Time now = read_clock();
  if (quiet_since_ == never) quiet_since_ = now;
  if (probing_ || failed() || now - quiet_since_ < patience_) return;
  probing_ = post(probe_, "asking whether the peer is alive");
}

}  // namespace urma::nccl
