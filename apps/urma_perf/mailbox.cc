#include "apps/urma_perf/mailbox.h"

namespace urma::perf {
namespace {

// A message that its receiver has not accepted within this time fails.
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
    receive(std::span(buffers_).subspan(i * most_message_bytes, most_message_bytes), i + 1);
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

// There is a slot for each buffer, so only a closed device refuses one. Polling then reports that.
void Mailbox::receive(std::span<std::byte> buffer, uint64_t tag) {
  (void)jetty_.receive(buffer, tag);
}

std::optional<std::string> Mailbox::handle(const Completion& completion) {
  if (completion.operation != Operation::receive) {
    if (completion.operation == Operation::send) {
      vacant_.push_back(static_cast<uint32_t>(completion.tag));
    }
    return std::nullopt;
  }
  // The immediate of a write has no buffer; after a close nothing arrives.
  const uint64_t tag = completion.tag;
  if (tag == 0 || tag > incoming || completion.status == Status::flushed) return std::nullopt;
  const auto buffer =
      std::span(buffers_).subspan((tag - 1) * most_message_bytes, most_message_bytes);
  std::optional<std::string> text;
  // A control message has no immediate, and is not longer than its buffer.
  if (completion.ok() && !completion.with_immediate) {
    text.emplace(reinterpret_cast<const char*>(buffer.data()), completion.bytes);
  }
  receive(buffer, tag);
  return text;
}

}  // namespace urma::perf
