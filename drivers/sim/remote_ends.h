// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "drivers/remote_access.h"
#include "drivers/sim/open_memory.h"
#include "urma/core/endpoint.h"
#include "urma/core/time.h"

namespace urma::drivers::sim {

class Network;

// The ends of pairs of a simulated device. A transfer reads the memory of its process when it
// leaves, and accesses that of the peer when it arrives, if the ends are connected to each other
// then and the key is valid. What has left can arrive after its own end was destroyed, as packets
// do, but not after the peer's end was. The port owns it.
class RemoteEnds final : public RemoteAccess {
 public:
  struct Settings {
    Endpoint self;
    uint32_t place = 0;       // in the network
    Duration delay{};         // of one way
    bool any_memory = false;  // transfers may use memory of this process that is not mapped
  };
  // All of these outlive the object.
  RemoteEnds(Network& network, const OpenMemory& memory, const Settings& settings);
  ~RemoteEnds() override;
  RemoteEnds(const RemoteEnds&) = delete;
  RemoteEnds& operator=(const RemoteEnds&) = delete;

  // The process was killed: its ends vanish, and nothing happens at them any longer.
  void vanish();

  // RemoteAccess
  uint32_t least_bytes() const override { return 1; }
  Handle make(bool opens) override;
  void connect(Handle end, const Description& other, const Eid& address) override;
  void stop(Handle end) override;
  size_t news(std::span<News> out) override;
  Begun begin(Handle end, const Task& task) override;
  size_t ended(std::span<Ended> out) override;
  std::optional<Opened> opened(std::span<const std::byte> memory, Rights rights,
                               Rights wanted) const override {
    return memory_.opened(memory, rights, wanted);
  }

 private:
  static constexpr uint32_t most_ends = 64;
  static constexpr uint32_t most_transfers = 256;
  static constexpr uint32_t depth = 32;  // transfers of an end

  enum class State : uint8_t { none, new_, connected, failed, stopping };
  struct End {
    uint32_t generation = 0;
    State state = State::none;
    State was = State::none;  // stopping: its state before
    uint64_t number = 0;      // in the network
    uint64_t other = 0;       // connected: the number of the other end
    uint32_t transfers = 0;
  };
  struct Transfer {
    uint64_t end = 0;  // its number; 0 if the transfer is vacant
    uint32_t generation = 0;
    uint32_t number = 0;  // the caller's
    bool read = false;
    uint32_t from = 0;
    uint32_t bytes = 0;
    std::vector<Piece> pieces;
  };
  // Everything that a transfer sends to the other end.
  struct Packet {
    uint64_t from = 0;
    uint64_t to = 0;
    uint32_t from_place = 0;
    uint32_t transfer = 0;
    uint32_t generation = 0;
    bool read = false;
    bool late = false;  // its transfer has ended: it is not repeated or answered
    There there{};
    uint32_t bytes = 0;
    uint32_t tries = 0;
    std::vector<std::byte> data;
  };

  End* find(Handle end);
  End* find(uint64_t number);
  Handle handle_of(const End& end) const {
    return {static_cast<uint32_t>(&end - ends_.data()), end.generation};
  }
  Transfer* find(const Packet& packet);
  static bool is_connected(const End& end);
  bool may_use(const Transfer& transfer) const;
  template <class Function>
  static void for_each_part(const Transfer& transfer, Function&& function);
  Duration way();
  template <class Function>
  void later(uint64_t end, Duration delay, Function&& function);
  void tell(const End& end, News::What what, const Description& own = {});
  void fail(End& end);
  void destroy(End& end);
  void finish(Transfer& transfer, bool done);
  void leave(uint32_t index, uint32_t generation, There there);
  static void arrive(Network& network, Packet packet);
  static void repeat(Network& network, Packet packet);
  static void execute(Network& network, RemoteEnds& at, Packet& packet, std::byte* memory);
  bool suffers(End& end, Packet& packet, std::byte* memory);
  void answer(Packet&& packet);
  void refuse(const Packet& packet);

  Network& network_;
  const OpenMemory& memory_;
  const Settings settings_;
  bool dead_ = false;
  std::array<End, most_ends> ends_;
  std::array<Transfer, most_transfers> transfers_;
  std::vector<Ended> ended_;
  std::vector<News> news_;
};

}  // namespace urma::drivers::sim
