// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/not_inherited.h"
#include "drivers/frame_pool.h"
#include "drivers/packet_port.h"

namespace urma::drivers::paths {

// A port that consists of several ports, each of which is a path. Owns the ports, and lends frames
// of a pool of its own. Sends each frame by the port that its path names: the transport chooses the
// path. Only the thread that runs the engine calls it, except for `make` and the destructor.
class PathsPort final : public PacketPort, public PathPorts {
 public:
  bool only_packets() const override { return true; }
  // `ports`: 2 to `most_paths` ports for which `objection` was empty. Errors: no_resources.
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
  void arm() override;
  void disarm() override;
  Time next_arrival() const override;
  VirtualClock* clock() override { return clock_; }
  void abandon() override;
  PathPorts* path_ports() override { return this; }

  // PathPorts
  Result<std::unique_ptr<Joining>> prepare(std::string_view device) override;
  void join(uint8_t number, Joining& joining) override;
  void stop(uint8_t number) override;
  std::unique_ptr<PacketPort> part(uint8_t number) override;

 private:
  static constexpr uint32_t frame_count = 1024;
  static constexpr size_t most_waiting = 64;  // frames that wait for one port
  static constexpr size_t most_unsettled = 1 << 14;
  static constexpr Duration patience = std::chrono::milliseconds(5);

  struct Port {
    std::unique_ptr<PacketPort> inner;  // null if this path is not used
    std::vector<NotInherited> kept;     // its descriptors
    bool stopped = false;               // nothing is received from it
    // Frames that wait for the port, oldest first, with their numbers in `sent_`.
    std::array<TxFrame*, most_waiting> waiting;
    std::array<uint64_t, most_waiting> numbers;
    size_t count = 0;
    uint64_t taken = 0;         // frames that the ports of this path have taken since open
    uint64_t taken_before = 0;  // those of them that earlier ports have taken
    Time refused_since = never;
  };
  // A frame that `send` took. It settles once the ports of its path have settled `until` frames.
  struct Sent {
    static constexpr uint64_t waits = UINT64_MAX;
    uint64_t until = waits;
    uint8_t path = 0;
  };

  class Joined;

  PathsPort(std::vector<std::unique_ptr<PacketPort>> ports, Balance balance,
            const SettingList& options);
  // Adds the descriptors of a port to the watched ones. Returns false with errno on failure.
  bool watch(PacketPort& port, std::vector<NotInherited>& kept);
  void pass_on(Port& port, Time now);
  void drop(Port& port);
  void forget(Port& port, size_t count);
  size_t next_to_receive() const;

  std::array<Port, most_paths> ports_;
  PortFacts facts_;  // as at open
  VirtualClock* clock_;
  PortCounters parted_;  // the sum of removed ports
  FramePool pool_{frame_count};
  // One descriptor, which is readable when any descriptor of a port is.
  std::vector<int> descriptors_;
  std::vector<Sent> sent_;  // a ring, by number of the frame
  uint64_t sent_first_ = 0;
  uint64_t sent_next_ = 0;
  uint64_t dropped_ = 0;
  size_t first_to_receive_ = 0;
};

// Returns why a port cannot be a path of a device whose first port has the address `beside` and
// this clock, or an empty text if it can.
std::string objection(PacketPort& port, const Eid& beside, VirtualClock* clock);

}  // namespace urma::drivers::paths
