// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/exporter.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "base/socket_address.h"

namespace urma::apps::stat {
namespace {

// The whole request has to arrive in this time, however many bytes of it do.
constexpr auto request_patience = std::chrono::seconds(2);
// The answer has to be taken in this time; Prometheus waits as long.
constexpr auto answer_patience = std::chrono::seconds(10);
constexpr auto pause_after_failure = std::chrono::milliseconds(100);
constexpr size_t most_request_bytes = 8192;

bool is_complete(std::string_view request) {
  return request.find("\r\n\r\n") != request.npos || request.find("\n\n") != request.npos;
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

// Returns whether a call on a socket that does not block has only to be repeated later.
bool later(ssize_t count) {
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace

Exporter::Exporter(const Endpoint& at)
    : listener_(socket(at.is_ipv4() ? AF_INET : AF_INET6,
                       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  SocketAddress address;
  const socklen_t bytes = to_sockaddr(at, address);
  constexpr int on = 1;
  if (listener_ >= 0) setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (listener_ >= 0 && bind(listener_, &address.any, bytes) == 0 &&
      listen(listener_, static_cast<int>(most_clients)) == 0) {
    return;
  }
  const int why = errno;
  if (listener_ >= 0) close(listener_);
  throw Failure(Exit::error, fmt::format("--listen {}: {}. Fix: give an address of this host and a "
                                         "vacant port, as 127.0.0.1:9464",
                                         to_string(at), std::strerror(why)));
}

Exporter::~Exporter() {
  for (const Client& client : clients_) close(client.socket);
  close(listener_);
}

// Sleeps until a client connects, sends or can take more, until the next one is to be dropped, or
// until Ctrl-C. Which of these it was is not needed: every socket is tried, and none blocks.
void Exporter::sleep() {
  const auto now = Clock::now();
  const bool accepts = now >= accepts_from_;
  auto until = accepts ? now + std::chrono::hours(1) : accepts_from_;
  std::vector<pollfd> each = {{interrupt_descriptor(), POLLIN, 0},
                              {accepts ? listener_ : -1, POLLIN, 0}};
  for (const Client& client : clients_) {
    const short events = client.answer.empty() ? POLLIN : POLLOUT;
    each.push_back({client.socket, events, 0});
    until = std::min(until, client.until);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  (void)poll(each.data(), each.size(), static_cast<int>(std::max<int64_t>(left, 0)));
}

void Exporter::drop(size_t index) {
  close(clients_[index].socket);
  clients_.erase(clients_.begin() + static_cast<ptrdiff_t>(index));
}

void Exporter::drop_idlest() {
  const auto idlest =
      std::min_element(clients_.begin(), clients_.end(),
                       [](const Client& a, const Client& b) { return a.moved < b.moved; });
  drop(static_cast<size_t>(idlest - clients_.begin()));
}

// Not more at a time than are served, so that a flood of connections leaves time to serve.
void Exporter::accept_clients() {
  const auto now = Clock::now();
  if (now < accepts_from_) return;
  for (size_t i = 0; i < most_clients; ++i) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0 && errno == ECONNABORTED) continue;
    if (socket < 0) {
      // There may be no descriptor left: until there is, the listener stays readable.
      if (!later(socket)) accepts_from_ = now + pause_after_failure;
      return;
    }
    if (clients_.size() == most_clients) drop_idlest();
    clients_.push_back({.socket = socket, .until = now + request_patience, .moved = now});
  }
}

// Reads and writes as much as is possible now. Returns false if the client is to be dropped.
bool Exporter::serve(Client& client, const std::function<std::string()>& text) const {
  const auto now = Clock::now();
  if (now >= client.until) return false;
  if (client.answer.empty()) {
    std::array<char, most_request_bytes> part;
    const ssize_t count = ::recv(client.socket, part.data(), part.size(), 0);
    if (count <= 0) return later(count);
    client.moved = now;
    client.request.append(part.data(), static_cast<size_t>(count));
    if (!is_complete(client.request)) return client.request.size() < most_request_bytes;
    client.answer = answer_to(client.request, text);
    client.until = now + answer_patience;
  }
  const std::string_view rest = std::string_view(client.answer).substr(client.sent);
  const ssize_t count = ::send(client.socket, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (count <= 0) return later(count);
  client.moved = now;
  client.sent += static_cast<size_t>(count);
  return client.sent < client.answer.size();
}

void Exporter::run(const std::function<std::string()>& text) {
  while (!interrupted()) {
    sleep();
    accept_clients();
    for (size_t i = 0; i < clients_.size();) {
      if (serve(clients_[i], text)) {
        ++i;
      } else {
        drop(i);
      }
    }
  }
}

}  // namespace urma::apps::stat
