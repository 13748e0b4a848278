// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/link.h"

#include <fmt/format.h>

#include <cstring>

#include "apps/common/failure.h"
#include "apps/common/program.h"

namespace urma::apps::perf {
namespace {

constexpr size_t presence_bytes = 64;

}  // namespace

Link::Link(Device& device, const std::string& host, const Service& service, int speaks)
    : host_(host),
      dialogue_(device, {.wording = wording(), .patience = std::chrono::nanoseconds(answered_in)}),
      asker_(dialogue_, "the server at " + host),
      presence_(must(device.allocate(presence_bytes, Rights::read), "memory to be seen by")) {
  asker_.meet(find_server(device, host, service).jetty);
  welcome_ = ask<Welcome>("hello", Hello{.speaks = speaks,
                                         .version = library_version(),
                                         .jetty = dialogue_.jetty().descriptor(),
                                         .presence = presence_.descriptor()});
}

Link::~Link() {
  try {
    exchange("bye", nullptr, second / 2);
  } catch (const std::exception&) {
    // The server notices by itself that the client has ended.
  }
}

void Link::take(const Completion& completion) {
  const auto text = dialogue_.handle(completion);
  if (completion.operation == Operation::send && !completion.ok()) {
    throw failed_work("talking to the server at " + host_, completion.status);
  }
  if (text) asker_.take(completion, *text);
}

Message Link::exchange(const std::string& type, nlohmann::json body, int64_t patience) {
  asker_.ask(type, std::move(body));
  for (const int64_t until = now() + patience; now() < until;) {
    // All completions that `wait` returned are handled, also those behind the answer.
    for (const Completion& completion : dialogue_.jetty().wait(std::chrono::milliseconds(20))) {
      take(completion);
    }
    if (const auto& answer = asker_.answer()) return *answer;
  }
  throw Failure(
      Exit::peer_lost,
      fmt::format("the server at {} has not answered \"{}\" for {} s. Fix: check whether it "
                  "still runs and is not stopped; if not, start it again",
                  host_, type, patience / second));
}

void Link::write(std::span<const std::byte> from, const RemoteSegment& to, uint64_t offset) {
  run(urma::write(from, to, offset), "sending the server the list of writes");
}

void Link::read(std::span<std::byte> to, const RemoteSegment& from, uint64_t offset) {
  run(urma::read(to, from, offset), "reading the server's words");
}

void Link::run(const Work& work, std::string_view doing) {
  dialogue_.post(asker_.to().peer, work);
  for (const int64_t until = now() + answered_in; now() < until;) {
    bool done = false;
    for (const Completion& completion : dialogue_.jetty().wait(std::chrono::milliseconds(20))) {
      dialogue_.handle(completion);
      if (completion.operation != work.operation) continue;
      if (!completion.ok()) {
        throw failed_work(fmt::format("{}, at {}", doing, host_), completion.status);
      }
      done = true;
    }
    if (done) return;
  }
  throw Failure(
      Exit::peer_lost,
      fmt::format("{}: the server at {} does not answer. Fix: start it again", doing, host_));
}

void Link::keep_alive() {
  std::array<Completion, 8> taken;
  const size_t count = dialogue_.jetty().poll(taken);
  for (const Completion& completion : std::span(taken).first(count)) dialogue_.handle(completion);
}

}  // namespace urma::apps::perf
