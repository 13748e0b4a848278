#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "drivers/driver.h"
#include "drivers/frame_pool.h"

namespace urma::drivers::udp {

struct Settings {
  Eid address;        // all zero: the first free loopback address
  uint16_t port = 0;  // 0: 4792, or if that is taken a port of our own
  uint32_t mtu = 0;   // 0: what the interface carries
  uint64_t rcvbuf = 4 << 20;
  bool gso = true;
  bool gro = true;
};

// One UDP socket. Sends bursts with GSO, receives them with GRO.
class UdpPort final : public PacketPort {
 public:
  static Result<std::unique_ptr<PacketPort>> open(const Settings& settings);
  ~UdpPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override { return counters_; }
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  // The kernel copies while it is called.
  uint64_t settled() override { return counters_.frames_sent; }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  int descriptor() const override { return socket_; }

 private:
  static constexpr uint32_t frame_count = 512;
  static constexpr unsigned messages = 64;  // in one call, either way
  static constexpr unsigned iovecs = 1024;  // in one call; also the kernel's limit per message
  static constexpr uint32_t buffer_count = 128;
  static constexpr uint32_t buffer_bytes = 65536;  // a GRO batch

  // One buffer that the kernel filled: one datagram, or several of one size.
  struct Filled {
    Endpoint from;
    uint32_t bytes;
    uint32_t segment;  // size of each datagram but the last
    uint32_t next;     // where the next one begins
    uint32_t lent;     // frames of it that are not released
  };
  struct Batch;

  UdpPort(int socket, const Settings& settings);
  void describe(const Settings& settings, const Endpoint& self, bool own_port);

  size_t group(std::span<TxFrame* const> frames, Batch& batch) const;
  int transmit(Batch& batch, const TxFrame& first);
  bool handle_send_error(int why);
  void drain_errors();
  void fetch();
  size_t split(std::span<RxFrame> frames);
  void done_with(uint32_t buffer);

  // Closed also when there is no memory for what comes after it.
  struct Socket {
    int descriptor;
    ~Socket();
    operator int() const { return descriptor; }
  };

  Socket socket_;
  bool gso_;
  bool gro_;
  PortFacts facts_;
  PortCounters counters_;
  FramePool pool_{frame_count};
  std::unique_ptr<Batch> batch_;

  // Inwards.
  Region storage_;
  std::array<Filled, buffer_count> filled_;
  std::array<uint32_t, buffer_count> free_;
  uint32_t free_count_ = 0;
  std::array<uint32_t, buffer_count> line_;  // filled and not wholly handed on, ring
  uint32_t line_first_ = 0;
  uint32_t line_count_ = 0;
  unsigned expected_ = 1;  // messages to ask for next time
};

}  // namespace urma::drivers::udp
