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
    uint32_t sends = 0;  // that the queue holds; receives as well
    uint32_t receives = 0;
    unsigned pieces = 1;        // of which a datagram is gathered
    uint32_t inline_bytes = 0;  // of datagrams that are copied into the queue, at most
  };
  // Errors: no_resources.
  static Result<DatagramQueue> make(const Adapter& adapter, const Settings& settings);

  // Senders have to show it.
  static constexpr uint32_t key = 0x01234567;  // RDMA_UDP_QKEY
  uint32_t inline_bytes() const { return inline_bytes_; }
  ibv_qp& pair() const { return *pair_; }
  int descriptor() const { return channel_->fd; }

  // Posts the works, which are linked. Returns 0, or an errno when the queue pair has failed.
  int send(ibv_send_wr& works) const;
  int receive(ibv_recv_wr& works) const;
  // Writes completions to the front of `out`, and returns how many. `SIZE_MAX`: the adapter is
  // gone.
  size_t poll_sent(std::span<ibv_wc> out) const;
  size_t poll_received(std::span<ibv_wc> out) const;

  // The descriptor becomes readable at the next arrival.
  void arm() const;
  // Takes the signals from the descriptor.
  void disarm();
  // The descriptor is never readable again. That of an adapter that was removed always would be.
  void silence() const;

  // Takes all works from the queues, which are then as new ones. Completions of these works may
  // still be polled. Returns false if the adapter does not.
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
