// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "drivers/verbs/adapter.h"
#include "urma/core/result.h"

namespace urma::drivers::verbs {

// The queue pair of a device, for datagrams, with a completion queue for each direction. A queue
// pair that has failed is reset, and keeps its number. Used by one thread at a time.
class DatagramQueue {
 public:
  struct Settings {
    uint32_t sends = 0;         // datagrams to be sent that the queue has room for
    uint32_t receives = 0;      // buffers for received ones that it has room for
    unsigned pieces = 1;        // the most pieces of memory that one datagram is made of
    uint32_t inline_bytes = 0;  // datagrams up to this size are copied into the queue
  };
  // Errors: no_resources.
  static Result<DatagramQueue> make(const Adapter& adapter, const Settings& settings);

  uint32_t inline_bytes() const { return inline_bytes_; }
  ibv_qp& pair() const { return *pair_; }
  int descriptor() const { return channel_->fd; }
  // The channel by which completions are signalled, also those of other queues.
  ibv_comp_channel& signals() const { return *channel_; }

  // Posts the works, which are linked. Returns 0, or an errno when the queue pair has failed.
  int send(ibv_send_wr& works) const;
  int receive(ibv_recv_wr& works) const;
  // Writes completions to the front of `out`, and returns how many, or SIZE_MAX if the queue cannot
  // be read any longer.
  size_t poll_sent(std::span<ibv_wc> out) const;
  size_t poll_received(std::span<ibv_wc> out) const;

  // The descriptor becomes readable at the next arrival.
  void arm() const;
  // Takes the signals from the descriptor.
  void disarm();
  // The descriptor is never readable again. That of an adapter that was removed always would be.
  void silence() const;

  // Empties the queues, which are then as new ones, and discards the completions of what was in
  // them. An adapter may add some later. Returns false if the adapter refuses.
  bool reset();

 private:
  DatagramQueue(const Adapter& adapter, Channel channel, CompletionQueue sent,
                CompletionQueue received, QueuePair pair, uint32_t inline_bytes)
      : port_(adapter.facts().port),
        channel_(std::move(channel)),
        sent_(std::move(sent)),
        received_(std::move(received)),
        pair_(std::move(pair)),
        inline_bytes_(inline_bytes) {}
  bool start();

  uint8_t port_;
  Channel channel_;
  CompletionQueue sent_;
  CompletionQueue received_;
  QueuePair pair_;
  uint32_t inline_bytes_;
};

}  // namespace urma::drivers::verbs
