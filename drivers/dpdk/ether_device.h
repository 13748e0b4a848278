// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "drivers/dpdk/extended_counters.h"
#include "drivers/dpdk/mbuf_pool.h"
#include "drivers/dpdk/pmd.h"
#include "drivers/dpdk/readable_memory.h"
#include "drivers/dpdk/receive_interrupts.h"

struct rte_mbuf;

namespace urma::drivers::dpdk {

// One port of DPDK: makes, configures, starts and removes it, and does so again when its peer has
// gone and the port cannot find it again by itself. It moves buffers, and knows nothing of their
// content. The packet port owns it; only the thread that runs the port calls it, except for `open`
// and the destructor.
class EtherDevice final : public ReadableMemory::Device {
 public:
  // Errors: those of urma::open.
  static Result<std::unique_ptr<EtherDevice>> open(const Settings& settings);
  ~EtherDevice() override;
  EtherDevice(const EtherDevice&) = delete;

  struct Facts {
    std::string driver;  // as dev_info names it
    Mac mac{};
    uint16_t queues = 1;
    uint16_t receive_descriptors = 0;
    uint16_t send_descriptors = 0;
    bool sums_udp = false;      // computes the UDP checksum of sent packets
    bool chains = false;        // sends packets that consist of several buffers
    unsigned most_buffers = 1;  // of one packet
    bool peer_seen = true;      // the link was up at open
    // The rate of the link, or its highest one if the link was down at open; 0 if the port states
    // none.
    uint64_t line_bytes_per_second = 0;
  };
  const Facts& facts() const { return facts_; }
  const Pmd& pmd() const { return pmd_; }
  // The buffers of packets to be sent.
  rte_mempool* send_pool() const { return send_pool_.get(); }

  // Returns how many packets it wrote to `out`, from the queue whose turn it is.
  size_t receive(std::span<rte_mbuf*> out);
  // Returns how many packets the port took, from the front. After the port has taken nothing for a
  // while, because its link is down or its peer does not read, packets are taken, dropped and
  // counted.
  size_t send(uint16_t queue, std::span<rte_mbuf*> packets, Time now);
  // Looks at the link, seldom, and restarts the port if it cannot go on by itself. Returns true
  // when the link has come up.
  bool tend(Time now);
  bool link_is_up() const;
  // Frees the buffers of packets that the port has read. Returns false if it cannot be asked for
  // that.
  bool complete();
  // Makes a port free the buffers of packets that it has not sent: drains a ring; restarts any
  // other port, or removes it and makes it again if `anew`.
  void take_back(bool anew);

  // Lets a NIC read these pages by DMA. Any thread may call them.
  bool map_pages(std::span<const std::byte> pages) override;
  void unmap_pages(std::span<const std::byte> pages) override;

  struct Counts {
    uint64_t dropped = 0;   // packets dropped while the link was down or stuck
    uint64_t restarts = 0;  // of the port
  };
  const Counts& counts() const { return counts_; }
  // Signals of arriving packets.
  ReceiveInterrupts& interrupts() { return interrupts_; }
  // The port's own statistics.
  ExtendedCounters& extended() { return extended_; }

 private:
  EtherDevice(const Settings& settings, const Pmd& pmd, MbufPool receive, MbufPool send,
              const Mac& mac)
      : settings_(settings),
        pmd_(pmd),
        receive_pool_(std::move(receive)),
        send_pool_(std::move(send)),
        drawn_mac_(mac),
        extended_(pmd.counts_connections) {}

  Result<void> make();
  Result<void> configure();
  Error too_few_queues(unsigned pairs) const;
  void close();
  Result<uint16_t> add_port();
  void in_turn(const std::function<void()>& call) const;
  bool start();
  void stop();
  void restart(bool anew);
  void remove();
  uint64_t line_rate() const;

  // absent: the port was removed; stopped: it cannot start before its peer is there.
  enum class State : uint8_t { absent, stopped, started };

  const Settings settings_;
  const Pmd& pmd_;
  MbufPool receive_pool_;
  MbufPool send_pool_;
  const Mac drawn_mac_;
  Facts facts_;
  Counts counts_;
  ReceiveInterrupts interrupts_;
  ExtendedCounters extended_;
  State state_ = State::absent;
  std::mutex making_;  // the port is not made anew while another thread maps memory for it
  uint16_t port_ = 0;
  uint16_t queue_ = 0;  // from which to receive next
  bool up_ = false;
  Time stuck_since_ = never;  // since when each `send` has taken nothing; never if the last one did
  Time look_at_{};            // when to look at the link again
  Time down_since_{};
};

}  // namespace urma::drivers::dpdk
