#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/not_inherited.h"
#include "drivers/driver.h"
#include "drivers/frame_pool.h"

namespace urma::drivers::paths {

// Several ports as one: each is a path of its own.
class PathsPort final : public PacketPort, public PathPorts {
 public:
  // 2 to `most_paths` ports to which there was no objection.
  static Result<std::unique_ptr<PacketPort>> make(std::vector<std::unique_ptr<PacketPort>> ports,
                                                  Balance balance, const SettingList& options);
  ~PathsPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override;
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return descriptors_; }
  Time next_arrival() const override;
  VirtualClock* clock() override { return clock_; }
  void abandon() override;
  PathPorts* path_ports() override { return this; }

  // PathPorts
  Result<std::unique_ptr<Joining>> prepare(std::string_view device) override;
  void join(uint8_t place, Joining& joining) override;
  void stop(uint8_t place) override;
  std::unique_ptr<PacketPort> part(uint8_t place) override;

 private:
  static constexpr uint32_t frame_count = 1024;
  static constexpr size_t most_waiting = 64;  // frames that one port has not taken
  static constexpr size_t most_unsettled = 1 << 14;
  static constexpr Duration patience = std::chrono::milliseconds(5);

  struct Port {
    std::unique_ptr<PacketPort> inner;  // null: there is none here
    std::vector<NotInherited> kept;     // its descriptors
    bool stopped = false;               // takes in nothing
    // Taken from above and not yet by the port, oldest first, with their numbers in `sent_`.
    std::array<TxFrame*, most_waiting> waiting;
    std::array<uint64_t, most_waiting> numbers;
    size_t count = 0;
    uint64_t taken = 0;         // frames that the ports of this place have taken since open
    uint64_t taken_before = 0;  // by those before this one
    Time refused_since = never;
  };
  // One frame that `send` took: read until its port has settled so many of its own.
  struct Sent {
    static constexpr uint64_t waits = UINT64_MAX;
    uint64_t until = waits;
    uint8_t path = 0;
  };

  class Joined;

  PathsPort(std::vector<std::unique_ptr<PacketPort>> ports, Balance balance,
            const SettingList& options);
  // False: errno.
  bool watch(PacketPort& port, std::vector<NotInherited>& kept);
  void pass_on(Port& port, Time now);
  void drop(Port& port);
  void forget(Port& port, size_t count);
  size_t next_to_receive() const;

  std::array<Port, most_paths> ports_;
  PortFacts facts_;  // as it was opened
  VirtualClock* clock_;
  PortCounters parted_;  // of ports that are gone
  FramePool pool_{frame_count};
  // That of all ports, whichever there are: one that is readable when any of theirs is.
  std::vector<int> descriptors_;
  std::vector<Sent> sent_;  // ring, by number
  uint64_t sent_first_ = 0;
  uint64_t sent_next_ = 0;
  uint64_t dropped_ = 0;
  size_t first_to_receive_ = 0;
};

// Why this cannot be a path beside ports of such an address, on this clock; empty if it can.
std::string objection(PacketPort& port, const Eid& beside, VirtualClock* clock);

}  // namespace urma::drivers::paths
