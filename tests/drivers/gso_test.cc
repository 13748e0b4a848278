// SPDX-License-Identifier: Apache-2.0
// Some interfaces cannot segment, and report this only when a program sends. This program defines
// its own sendmsg and sendmmsg, which act like such an interface when a test asks for it.

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tests/catch.h"
#include "tests/drivers/ports.h"

namespace {

std::atomic<bool> refuses{false};
std::atomic<unsigned> refused{0};

bool refuse(const msghdr& message) {
  if (!refuses || message.msg_controllen == 0) return false;
  ++refused;
  errno = EIO;
  return true;
}

}  // namespace

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  if (refuse(*message)) return -1;
  return syscall(SYS_sendmsg, socket, message, flags);
}

extern "C" int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  if (refuse(messages[0].msg_hdr)) return -1;
  return static_cast<int>(syscall(SYS_sendmmsg, socket, messages, count, flags));
}

namespace urma::test {
namespace {

// The data path does not allocate, and other threads may read the port's facts meanwhile.
TEST_CASE("if an interface refuses GSO, bursts arrive and the port's facts do not change") {
  PortPair ports("udp:", "udp:");
  const std::string before = ports.a->facts().description;
  const std::vector<Packet> sent(8, packet_of(500, 1));
  std::vector<TxFrame*> frames(sent.size());
  refuses = true;
  for (unsigned burst = 0; burst < 2; ++burst) {
    REQUIRE(ports.a->lend(frames) == frames.size());
    for (TxFrame* frame : frames) {
      frame->head_bytes = frame->tail_bytes = 0;
      frame->piece_count = 1;
      frame->pieces[0] = {sent[0].data(), static_cast<uint32_t>(sent[0].size())};
      frame->to = ports.b->facts().self;
    }
    REQUIRE(ports.a->send(frames, ports.now()) == frames.size());
    CHECK(receive_packets(ports, *ports.b, sent.size()) == sent);
  }
  refuses = false;
  CHECK(refused == 1);  // GSO was tried only once
  CHECK(ports.a->facts().description == before);
  CHECK(ports.a->counters().send_failures == 0);
}

}  // namespace
}  // namespace urma::test
