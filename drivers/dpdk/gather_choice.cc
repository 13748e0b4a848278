// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/gather_choice.h"

#include <rte_eal.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/copy.h"
#include "base/region.h"

namespace urma::drivers::dpdk {
namespace {

constexpr unsigned packets = 64;  // of a burst, as the port is given them
constexpr unsigned rounds = 8;    // of which the fastest counts: others were interrupted
constexpr uint32_t least_measured = 128;
// A port needs more time for a chain than for one buffer, which is not measured.
constexpr double margin = 2;

std::string nanoseconds(double value) {
  return std::to_string(static_cast<uint64_t>(value + 0.5)) + " ns";
}

// One burst of packets with pieces in ordinary memory.
class Trial {
 public:
  Trial(rte_mempool* pool, uint32_t most_bytes)
      : most_bytes_(most_bytes), memory_(size_t{packets} * most_bytes), pool_(pool) {
    count_ = rte_pktmbuf_alloc_bulk(pool, heads_.data(), packets) == 0 ? packets : 0;
    frame_.piece_count = 1;
    frame_.tail_bytes = 4;
    for (size_t i = 0; i < memory_.bytes(); ++i) memory_.data()[i] = static_cast<std::byte>(i);
  }
  Trial(const Trial&) = delete;
  ~Trial() { rte_pktmbuf_free_bulk(heads_.data(), count_); }

  double chain_ns() {
    Gatherer gatherer({.least_bytes = 1, .most_buffers = 3, .pool = pool_});
    return each([&](const TxFrame& frame, rte_mbuf& head) {
      if (gatherer.chain(frame, head, 0)) gatherer.undo_latest(head);
    });
  }
  double copy_ns(uint32_t bytes) {
    return each([&](const TxFrame& frame, rte_mbuf& head) {
      copy_bytes(rte_pktmbuf_mtod(&head, std::byte*), frame.pieces[0].data, bytes);
    });
  }

 private:
  // Returns the least time that `function` took for one packet.
  template <class Function>
  double each(Function&& function) {
    double least = 1e9;
    for (unsigned round = 0; round < rounds && count_ > 0; ++round) {
      const Time begun = read_clock();
      for (unsigned i = 0; i < count_; ++i) {
        frame_.pieces[0] = {memory_.data() + size_t{i} * most_bytes_, most_bytes_};
        function(frame_, *heads_[i]);
      }
      least = std::min(least, static_cast<double>((read_clock() - begun).count()) / count_);
    }
    return least;
  }

  const uint32_t most_bytes_;
  Region memory_;
  rte_mempool* const pool_;
  TxFrame frame_{};
  std::array<rte_mbuf*, packets> heads_{};
  unsigned count_ = 0;
};

// Returns why this port does not gather at all, or an empty text.
std::string obstacle(const Settings& settings, EtherDevice& device) {
  using Reads = Pmd::Reads;
  const EtherDevice::Facts& facts = device.facts();
  const Reads reads = device.pmd().reads;
  if (settings.gather == Gather::never) return "gather=never";
  if (reads == Reads::own_memory) return "this port reads only buffers of DPDK";
  if (reads == Reads::when_received && settings.gather == Gather::automatic) {
    return "the other end decides when packets are read";
  }
  if (!facts.chains) return "this port sends no chains of buffers";
  if (reads == Reads::by_device && rte_eal_iova_mode() != RTE_IOVA_VA) {
    return "EAL runs without --iova-mode=va";
  }
  if (reads == Reads::by_device && !device.complete()) {
    return "this port cannot be asked which packets it has read";
  }
  return "";
}

}  // namespace

GatherChoice choose_gathering(const Settings& settings, EtherDevice& device, uint32_t most_bytes) {
  if (std::string why = obstacle(settings, device); !why.empty()) {
    return {.why = std::move(why)};
  }
  if (settings.gather == Gather::always) return {.least_bytes = 1, .why = "gather=always"};
  if (settings.gather == Gather::registered) return {.least_bytes = 1, .why = "gather=registered"};
  Trial trial(device.send_pool(), most_bytes);
  const double chain_ns = trial.chain_ns();
  uint32_t bytes = least_measured;
  while (bytes <= most_bytes && trial.copy_ns(bytes) < chain_ns * margin) bytes *= 2;
  const std::string why = "a chain costs " + nanoseconds(chain_ns) + ", a copy of " +
                          size_text(most_bytes) + " " + nanoseconds(trial.copy_ns(most_bytes));
  if (bytes > most_bytes) return {.why = why};
  return {.least_bytes = bytes, .why = why};
}

}  // namespace urma::drivers::dpdk
