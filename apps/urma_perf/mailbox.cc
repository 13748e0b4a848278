#include "apps/urma_perf/mailbox.h"

namespace urma::perf {
namespace {

// After this a message fails that its receiver does not take.
constexpr Duration patience = std::chrono::seconds(2);

Jetty make_jetty(Device& device, uint32_t berths, uint32_t receives, Jfc* completions) {
  return must(device.jetty({.berths = berths,
                            .receives = receives,
                            .operation_timeout = {},
                            .receiver_timeout = patience,
                            .completions = completions}),
              "a Jetty for control messages");
}

}  // namespace

Mailbox::Mailbox(Device& device, Jfc* completions)
    : buffers_(incoming * most_message_bytes),
      jetty_(make_jetty(device, outgoing, incoming, completions)) {
  for (uint32_t i = 0; i < outgoing; ++i) vacant_.push_back(i);
  for (uint32_t i = 0; i < incoming; ++i) {
    receive(std::span(buffers_).subspan(i * most_message_bytes, most_message_bytes), i);
  }
}

void Mailbox::send(const RemoteJetty& to, const Message& message) {
  if (vacant_.empty()) {
    throw Failure(Exit::peer_lost,
                  "control messages are not taken by the other side. Fix: see "
                  "whether it still runs");
  }
  const uint32_t number = vacant_.back();
  texts_[number] = to_text(message);
  if (jetty_.post(urma::send(std::as_bytes(std::span(texts_[number])), to).tag(number)) == 1) {
    vacant_.pop_back();
    return;
  }
  throw Failure(Exit::error,
                "a control message was not taken. Fix: report this as a fault of "
                "liburma");
}

// There is a slot for each buffer, so only a closed device refuses one; polling then reports that.
void Mailbox::receive(std::span<std::byte> buffer, uint32_t number) {
  (void)jetty_.receive(buffer, number);
}

std::optional<std::string> Mailbox::handle(const Completion& completion) {
  const auto number = static_cast<uint32_t>(completion.tag);
  if (completion.operation != Operation::receive) {
    if (completion.operation == Operation::send) vacant_.push_back(number);
    return std::nullopt;
  }
  if (number >= incoming || completion.status == Status::flushed) return std::nullopt;
  const auto buffer = std::span(buffers_).subspan(number * most_message_bytes, most_message_bytes);
  std::optional<std::string> text;
  // A message that is too long for us is none of ours.
  if (completion.ok()) {
    text.emplace(reinterpret_cast<const char*>(buffer.data()), completion.bytes);
  }
  receive(buffer, number);
  return text;
}

}  // namespace urma::perf
