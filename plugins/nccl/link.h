// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugins/nccl/abi.h"
#include "plugins/nccl/session.h"

namespace urma::nccl {

// One end of a connection, of a sender or of a receiver: the Jetty, the peer, the first failure,
// and the probes by which it learns that the peer is dead.
//
// A peer that dies is noticed by works that are posted to it. A request that only waits for the
// peer posts none, so while it waits and nothing arrives, the link posts a probe, a small work of
// no consequence. If one of its works fails, the link has failed, and so have all its requests.
//
// One thread at a time uses it. It neither allocates nor locks, except where it fails.
class Link {
 public:
  // `what` names the link in the log: "sender" or "receiver".
  Link(SessionRef session, const char* what, Jetty jetty);

  // From now on the link has this peer, and posts this probe. Its memory must live as long as the
  // link.
  void join(const Imported& peer, const Work& probe);
  const RemoteSegment& board() const { return peer_.segment; }
  // Returns whether works on the peer's board are copies, which later works see
  // (stores_keep_order).
  bool is_direct() const { return direct_; }

  Session& session() const { return *session_; }
  Jetty& jetty() { return jetty_; }

  // Returns the result of calls and requests: success until the link fails.
  Code code() const { return code_; }
  bool failed() const { return code_ != Code::success; }
  // The link fails, with a line in the log unless it has failed already.
  void fail(Status status, const char* doing);

  // Posts a work of the link. Returns false if it was not accepted: the link has failed then.
  bool post(const Work& work, const char* doing);
  // Posts a write to the board, after which a word of the board is set. They complete as one work,
  // with the tag of the write.
  bool post(Work& write, uint64_t word_at, uint64_t value, const char* doing);
  // Runs the device, and calls `handle` for each completion that is not of a probe. Returns whether
  // there were any.
  template <class Handle>
  bool poll(Handle&& handle) {
    std::array<Completion, 16> done;
    const size_t count = jetty_.poll(done);
    for (size_t i = 0; i < count; ++i) {
      if (!is_own(done[i])) handle(done[i]);
    }
    return count > 0;
  }
  // Notes that the peer has shown a sign of life.
  void heard() { quiet_since_ = never; }
  // Called when a request waits and nothing has arrived. Posts a probe if that has lasted.
  void wait();

  // The tags of works that are not of a request or a slot.
  static constexpr uint64_t probe_tag = uint64_t{1} << 56;
  static constexpr uint64_t greeting_tag = probe_tag + 1;

 private:
  bool is_own(const Completion& done);

  const SessionRef session_;  // closed after the Jetty
  const char* const what_;
  std::string where_;  // the peer's address
  Jetty jetty_;
  Imported peer_{};
  Work probe_;
  bool direct_ = false;
  const Duration patience_;   // without a sign of life, before a probe
  Time quiet_since_ = never;  // since when requests wait without a sign of life
  bool probing_ = false;
  Code code_ = Code::success;
};

// Returns a work that reaches the process of the peer, and changes only this word of its board. A
// plain write to a board in a window would be a copy, which succeeds even if that process is dead.
inline Work probe_of(const Imported& peer, uint64_t at) {
  return urma::write(std::span<const std::byte>(), peer.segment).notify(peer.segment, at, 1);
}

// Returns the options of a Jetty whose requests have to end within the timeout after the death of
// the peer: the last quarter is what a request waits for before a probe. A word is not written if
// the data before it was not, because a failed work suspends the Jetty.
inline JettyOptions options_of_link(uint32_t works, uint32_t receives, Duration timeout) {
  constexpr uint32_t spare = 8;  // for greetings and probes
  return {.berths = 2 * works + spare,
          .receives = receives,
          .operation_timeout = timeout * 3 / 4,
          .suspend_on_error = true};
}

}  // namespace urma::nccl
