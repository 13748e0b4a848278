#include "apps/urma_perf/link.h"

#include <fmt/format.h>

#include <cstring>

#include "apps/urma_perf/failure.h"

namespace urma::perf {
namespace {

constexpr size_t presence_bytes = 64;

}  // namespace

Link::Link(Device& device, const std::string& host, const Service& service, int speaks)
    : host_(host),
      mailbox_(device, nullptr),
      presence_(must(device.allocate(presence_bytes, Rights::read), "memory to be seen by")) {
  server_ = apps::find_server(device, host, service).jetty;
  welcome_ = ask<Welcome>("hello", Hello{.speaks = speaks,
                                         .version = library_version(),
                                         .jetty = mailbox_.jetty().descriptor(),
                                         .presence = presence_.descriptor()});
}

Link::~Link() {
  try {
    exchange("bye", nullptr, second / 2);
  } catch (const std::exception&) {
    // The server notices by itself that the client has ended.
  }
}

Message Link::exchange(const std::string& type, nlohmann::json body, int64_t patience) {
  const uint64_t id = next_id_++;
  mailbox_.send(server_, {.id = id, .type = type, .body = std::move(body)});
  for (const int64_t until = now() + patience; now() < until;) {
    std::optional<Message> answer;
    // All completions that `wait` returned are handled, also those behind the answer.
    for (const Completion& completion : mailbox_.jetty().wait(std::chrono::milliseconds(20))) {
      const auto text = mailbox_.handle(completion);
      if (completion.operation == Operation::send && !completion.ok()) {
        throw failed_work("talking to the server at " + host_, completion.status);
      }
      if (!text) continue;
      Message message = parse_message(*text);
      if (message.id == id) answer = std::move(message);
    }
    if (!answer) continue;
    if (answer->type != "failed") return *answer;
    const auto failed = answer->body.get<Failed>();
    throw Failure(failed.exit, "the server at " + host_ + ": " + failed.message);
  }
  throw Failure(
      Exit::peer_lost,
      fmt::format("the server at {} has not answered \"{}\" for {} s. Fix: see whether it "
                  "still runs and is not stopped, and start it again",
                  host_, type, patience / second));
}

Failure Link::not_understood(const std::string& type, const char* why) const {
  return {Exit::error, fmt::format("the answer of the server at {} to \"{}\" is not understood: "
                                   "{}. Fix: use the same urma_perf on both sides",
                                   host_, type, why)};
}

void Link::write(std::span<const std::byte> from, const RemoteSegment& to, uint64_t offset) {
  run(urma::write(from, to, offset), "sending the server the list of writes");
}

void Link::read(std::span<std::byte> to, const RemoteSegment& from, uint64_t offset) {
  run(urma::read(to, from, offset), "reading the server's words");
}

void Link::run(const Work& work, std::string_view doing) {
  if (mailbox_.jetty().post(work) != 1) {
    throw Failure(Exit::error, "a work was not accepted. Fix: report this as a fault of liburma");
  }
  for (const int64_t until = now() + 10 * second; now() < until;) {
    bool done = false;
    for (const Completion& completion : mailbox_.jetty().wait(std::chrono::milliseconds(20))) {
      mailbox_.handle(completion);
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
  const size_t count = mailbox_.jetty().poll(taken);
  for (const Completion& completion : std::span(taken).first(count)) mailbox_.handle(completion);
}

}  // namespace urma::perf
