// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/exporter.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "base/socket_address.h"

namespace urma::apps::stat {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(2);
constexpr auto pause_after_failure = std::chrono::milliseconds(100);
constexpr size_t most_request_bytes = 8192;

// Waits until the socket is ready. Returns false at the deadline, and at Ctrl-C.
bool await(int socket, short events, Clock::time_point until) {
  while (!interrupted()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> each{{{socket, events, 0}, {interrupt_descriptor(), POLLIN, 0}}};
    if (poll(each.data(), each.size(), static_cast<int>(left)) > 0 && each[0].revents != 0) {
      return true;
    }
  }
  return false;
}

// Returns what the client has sent up to the empty line; empty if that does not come.
std::string read_request(int client, Clock::time_point until) {
  std::string request;
  while (request.size() < most_request_bytes && await(client, POLLIN, until)) {
    std::array<char, 1024> part;
    const ssize_t count = ::recv(client, part.data(), part.size(), MSG_DONTWAIT);
    if (count <= 0) return {};
    request.append(part.data(), static_cast<size_t>(count));
    if (request.find("\r\n\r\n") != request.npos || request.find("\n\n") != request.npos) {
      return request;
    }
  }
  return {};
}

std::string answer_to(std::string_view request, const std::function<std::string()>& text) {
  const auto answer = [](std::string_view status, std::string_view body) {
    return fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        status, body.size(), body);
  };
  if (!request.starts_with("GET ")) return answer("405 Method Not Allowed", "only GET\n");
  const std::string_view path = request.substr(4, request.find_first_of(" ?\r\n", 4) - 4);
  if (path != "/metrics") return answer("404 Not Found", "see /metrics\n");
  try {
    return answer("200 OK", text());
  } catch (const Failure& failure) {
    return answer("503 Service Unavailable", failure.what());
  }
}

void write_answer(int client, std::string_view answer, Clock::time_point until) {
  while (!answer.empty() && await(client, POLLOUT, until)) {
    const ssize_t count = ::send(client, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count <= 0) return;
    answer.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

Exporter::Exporter(const Endpoint& at)
    : listener_(socket(at.is_ipv4() ? AF_INET : AF_INET6,
                       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  SocketAddress address;
  const socklen_t bytes = to_sockaddr(at, address);
  constexpr int on = 1;
  if (listener_ >= 0) setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (listener_ >= 0 && bind(listener_, &address.any, bytes) == 0 && listen(listener_, 16) == 0) {
    return;
  }
  const int why = errno;
  if (listener_ >= 0) close(listener_);
  throw Failure(Exit::error, fmt::format("--listen {}: {}. Fix: give an address of this host and a "
                                         "vacant port, as 127.0.0.1:9464",
                                         to_string(at), std::strerror(why)));
}

Exporter::~Exporter() { close(listener_); }

void Exporter::run(const std::function<std::string()>& text) {
  while (!interrupted()) {
    if (!await(listener_, POLLIN, Clock::now() + std::chrono::hours(1))) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) {
      // There may be no descriptor left: until there is, the listener stays readable.
      (void)await(-1, 0, Clock::now() + pause_after_failure);
      continue;
    }
    const auto until = Clock::now() + patience;
    const std::string request = read_request(client, until);
    if (!request.empty()) write_answer(client, answer_to(request, text), until);
    close(client);
  }
}

}  // namespace urma::apps::stat
