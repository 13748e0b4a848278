// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "drivers/frame_pool.h"
#include "drivers/packet_port.h"
#include "drivers/udp/mmsg_io.h"
#include "drivers/udp/udp_socket.h"
#include "drivers/udp/uring_io.h"

namespace urma::drivers::udp {

// A port at one UDP address. Sends bursts with GSO, and receives them with GRO. A second socket, at
// the same address, is connected to the partner: the peer with which most small datagrams are
// exchanged. Owns both sockets and the frames. Only the thread that runs the engine calls it,
// except for `open` and the destructor.
class UdpPort final : public PacketPort {
 public:
  static Result<std::unique_ptr<PacketPort>> open(const Settings& settings);
  ~UdpPort() override;

  Result<std::unique_ptr<PacketPort>> beside(const Eid& eid) override;
  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override { return counters_; }
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  // The kernel copies the frames within the system call.
  uint64_t settled() override { return counters_.frames_sent; }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return descriptors_; }

 private:
  static constexpr uint32_t frame_count = 512;
  static constexpr unsigned iovecs = 1024;  // of one call; also the kernel's limit per message

  // A buffer that the kernel filled: with one datagram, or with several of one size.
  struct Filled {
    Endpoint from;
    Ecn ecn;           // of each datagram
    uint32_t segment;  // the size of each datagram except the last
    uint32_t next;     // the offset of the next one in the buffer
    uint32_t end;      // the offset behind the last one
    uint32_t lent;     // its frames that are not released; one more while it is in `line_`
  };
  struct Batch;

  UdpPort(Socket main, Socket other, OpenedUring uring, const Settings& settings,
          const Endpoint& self);

  void state_settings(const Settings& settings, const Socket::Interface& interface);
  void state_io(IoChoice chosen, const std::string& why_not);
  Ecn ecn_of(const TxFrame& frame) const { return facts_.carries.ecn ? frame.ecn : Ecn::not_ect; }
  size_t group(std::span<TxFrame* const> frames, Batch& batch) const;
  void gather(std::span<TxFrame* const> frames, Batch& batch) const;
  int transmit(BatchIo& io, Batch& batch);
  int transmit_small(const TxFrame& frame, size_t bytes);
  [[gnu::cold]] bool handle_send_error(int why);
  [[gnu::cold]] bool leave_refused_ring();
  [[gnu::cold]] void drain_all_errors();
  [[gnu::cold]] void drain_errors(int socket);
  static bool says_unreachable(msghdr& entry);
  [[gnu::cold]] void count_towards_talk(const Endpoint& to);
  [[gnu::cold]] void begin_talk();
  [[gnu::cold]] void end_talk();
  bool fetch(unsigned from);
  bool fetch_talk();
  void note_receive_error(int why, int socket);
  void put_in_line(const Arrival& arrival);
  void look_elsewhere(bool busy_here, Time now);
  size_t split(std::span<RxFrame> frames);
  void done_with(uint32_t buffer);

  enum : unsigned { everybody, partner };
  std::array<Socket, 2> sockets_;
  std::array<int, 2> descriptors_;
  const Settings settings_;  // as this port was opened, for `beside`
  uint32_t beside_ = 0;      // ports that were opened so
  bool gso_;
  const bool may_talk_;
  PortFacts facts_;
  PortCounters counters_;
  FramePool pool_{frame_count};
  std::unique_ptr<Batch> batch_;
  MmsgIo single_io_;                // for datagrams that leave or arrive alone
  std::unique_ptr<UringIo> uring_;  // null if the port does not use io_uring
  BatchIo* io_ = &single_io_;       // for batches

  // The partner, with which small datagrams are exchanged one at a time (count_towards_talk).
  enum class Talk : uint8_t { no, soon, yes };  // soon: begins when its socket's queue is empty
  Talk talk_ = Talk::no;
  bool shared_ = false;  // the partner's socket is bound, so it may have received something
  Endpoint partner_;     // not valid until there is a partner
  Endpoint candidate_;
  uint32_t turns_ = 0;          // alternations between the candidate's datagrams and ours
  bool heard_ = false;          // a small datagram has arrived since the last one was sent
  uint32_t talk_in_a_row_ = 0;  // datagrams received without an empty queue in between

  // Receiving.
  Buffers buffers_;
  std::array<Arrival, BatchIo::most_received> arrivals_;  // of one call
  std::array<Filled, Buffers::count> filled_;
  // A ring of filled buffers with frames not received yet.
  std::array<uint32_t, Buffers::count> line_;
  uint32_t line_first_ = 0;
  uint32_t line_count_ = 0;
  unsigned latest_ = everybody;  // the socket from which the last datagram came
  Time looked_elsewhere_at_{};
};

}  // namespace urma::drivers::udp
