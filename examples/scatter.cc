// SPDX-License-Identifier: Apache-2.0
// Scatters one buffer to N peers: each gets its part, and is notified. By the deadline all parts
// are there, or the peers that lack theirs are named.
//
//   example_scatter own NAME              owns memory, waits for a part of it, prints it
//   example_scatter send MS NAME...       scatters "part 0", "part 1", ... within MS milliseconds
//
// At the deadline `flush` ends the outstanding works, so that the buffer is ours again when we
// print which peers failed: `flushed` has not executed, `unknown` may have.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <urma/urma.hpp>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t part_bytes = 64 * 1024;

int own(const std::string& name) {
  auto device = urma::open().value();
  auto memory = device.allocate(part_bytes, urma::Rights::write).value();
  auto jetty = device.jetty({.berths = 0, .receives = 1}).value();
  device.publish(name, memory, jetty).value();
  std::printf("%s is ready\n", name.c_str());
  std::fflush(stdout);
  for (const auto& arrival : jetty.wait(30s)) {
    if (!arrival.ok()) break;
    std::printf("%s has \"%s\", %u bytes, %llu of all\n", name.c_str(),
                reinterpret_cast<const char*>(memory.bytes().data()), arrival.bytes,
                static_cast<unsigned long long>(arrival.immediate));
    return 0;
  }
  return 1;
}

int scatter(std::chrono::milliseconds limit, const std::vector<std::string>& names) {
  auto device = urma::open().value();
  auto jetty = device.jetty({.berths = static_cast<uint32_t>(names.size())}).value();
  std::vector<urma::Imported> peers;
  for (const auto& name : names) peers.push_back(device.import("urma://localhost/" + name).value());

  std::vector<std::byte> buffer(part_bytes * names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    std::snprintf(reinterpret_cast<char*>(&buffer[i * part_bytes]), part_bytes, "part %zu", i);
  }

  // All parts are sent immediately. The tag of a work says which peer it is for.
  std::vector<urma::Status> ends(names.size(), urma::Status::timed_out);
  size_t left = names.size();
  const auto deadline = Clock::now() + limit;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto part = std::span(buffer).subspan(i * part_bytes, part_bytes);
    const auto work =
        urma::write(part, peers[i].segment).to(peers[i].jetty).immediate(names.size()).tag(i);
    // There is a berth for each part, so only a closed device refuses one.
    if (jetty.post(work) == 0) ends[i] = urma::Status::closed, --left;
  }
  const auto take = [&](std::span<const urma::Completion> completions) {
    for (const auto& done : completions) ends[done.tag] = done.status, --left;
    return !completions.empty();
  };
  while (left > 0 && take(jetty.wait(std::max(deadline - Clock::now(), Clock::duration())))) {
  }
  if (left > 0) {
    jetty.flush().value();
    while (left > 0 && take(jetty.wait(1s))) {
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    std::printf("%s %s\n", names[i].c_str(), urma::name(ends[i]).data());
  }
  return std::count(ends.begin(), ends.end(), urma::Status::ok) ==
                 static_cast<std::ptrdiff_t>(names.size())
             ? 0
             : 1;
}

}  // namespace

int main(int count, char** words) try {
  const std::vector<std::string> all(words + 1, words + count);
  if (all.size() == 2 && all[0] == "own") return own(all[1]);
  int limit = 0;
  if (all.size() >= 3 && all[0] == "send" &&
      std::from_chars(all[1].data(), all[1].data() + all[1].size(), limit).ec == std::errc{}) {
    return scatter(std::chrono::milliseconds(limit), {all.begin() + 2, all.end()});
  }
  std::fprintf(stderr, "usage: example_scatter own NAME | send MS NAME...\n");
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "example_scatter: %s\n", e.what());
  return 1;
}
