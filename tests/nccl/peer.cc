// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/peer.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "tests/umdk/check.h"

namespace urma::test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Peer::Peer(const std::string& role, const std::string& plugin) {
  int both[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
  const std::string number = std::to_string(both[1]);
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    close(both[0]);
    execl("/proc/self/exe", role.c_str(), role.c_str(), plugin.c_str(), number.c_str(), nullptr);
    _exit(127);
  }
  close(both[1]);
  channel_ = both[0];
}

Peer::~Peer() {
  if (pid_ > 0) kill();
  close(channel_);
}

void Peer::kill() {
  ::kill(pid_, SIGKILL);
  wait();
}

int Peer::wait() {
  int status = 0;
  CHECK(waitpid(std::exchange(pid_, -1), &status, 0) > 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Connection connect_ranks(const Net& net, int channel) {
  Connection out;
  REQUIRE(net.init(&out.context) == Code::success);
  NetHandle mine, theirs;
  REQUIRE(net.listen(out.context, mine, &out.pair.listener) == Code::success);
  REQUIRE(::send(channel, &mine, sizeof mine, MSG_NOSIGNAL) == sizeof mine);
  REQUIRE(recv(channel, &theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs);
  const auto until = Clock::now() + 20s;
  while (out.pair.sender == nullptr || out.pair.receiver == nullptr) {
    if (out.pair.sender == nullptr) {
      REQUIRE(net.connect(out.context, theirs, &out.pair.sender) == Code::success);
    }
    if (out.pair.receiver == nullptr) {
      REQUIRE(net.accept(out.pair.listener, &out.pair.receiver) == Code::success);
    }
    REQUIRE(Clock::now() < until);
  }
  return out;
}

void close_ranks(const Net& net, const Connection& connection) {
  close_pair(net, connection.pair);
  CHECK(net.finalize(connection.context) == Code::success);
}

Rank::Rank(const std::string& plugin, int channel, size_t bytes)
    : net(plugin, Net::newest), connection(connect_ranks(net, channel)), out(bytes), in(bytes) {
  const Pair& pair = connection.pair;
  REQUIRE(net.add(pair.sender, out.data(), bytes, &out_memory) == Code::success);
  REQUIRE(net.add(pair.receiver, in.data(), bytes, &in_memory) == Code::success);
}

Rank::~Rank() {
  CHECK(net.remove(connection.pair.sender, out_memory) == Code::success);
  CHECK(net.remove(connection.pair.receiver, in_memory) == Code::success);
  close_ranks(net, connection);
}

void* Rank::send(size_t bytes, size_t at) {
  return test::send(net, connection.pair.sender, out.data() + at, bytes, 1, out_memory);
}

void* Rank::receive(size_t bytes, size_t at) {
  return test::receive(net, connection.pair.receiver, in.data() + at, bytes, 1, in_memory);
}

}  // namespace urma::test
