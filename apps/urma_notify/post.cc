#include "apps/urma_notify/post.h"

namespace urma::notify {
namespace {

// A message that its receiver has not accepted within this time fails.
constexpr Duration patience = std::chrono::seconds(2);

}  // namespace

Post::Post(Device& device, uint32_t berths, uint32_t receives)
    : buffers_(size_t{receives} * most_message_bytes),
      jetty_(must(device.jetty({.berths = berths,
                                .receives = receives,
                                .operation_timeout = {},
                                .receiver_timeout = patience}),
                  "a Jetty for messages")) {
  for (uint32_t i = 0; i < receives; ++i) {
    receive(std::span(buffers_).subspan(i * most_message_bytes, most_message_bytes), i + 1);
  }
}

void Post::say(const RemoteJetty& to, const Message& message) {
  const std::string& text = texts_[next_text_] = to_text(message);
  post(urma::send(std::as_bytes(std::span(text)), to).tag(next_text_++));
}

void Post::post(const Work& work) {
  waiting_.push_back(work);
  push();
}

void Post::push() {
  while (!waiting_.empty() && jetty_.post(waiting_.front()) == 1) {
    ++outstanding_;
    waiting_.pop_front();
  }
}

// There is a slot for each buffer, so only a closed device refuses one. Polling then reports that.
void Post::receive(std::span<std::byte> buffer, uint64_t tag) { (void)jetty_.receive(buffer, tag); }

std::optional<std::string> Post::handle(const Completion& completion) {
  if (completion.operation != Operation::receive) {
    if (outstanding_ > 0) --outstanding_;
    texts_.erase(completion.tag);
    push();
    return std::nullopt;
  }
  // The immediate of a write has no buffer; after a close nothing arrives.
  if (completion.tag == 0 || completion.status == Status::flushed) return std::nullopt;
  const auto buffer =
      std::span(buffers_).subspan((completion.tag - 1) * most_message_bytes, most_message_bytes);
  std::optional<std::string> text;
  if (completion.ok() && !completion.with_immediate) {
    text.emplace(reinterpret_cast<const char*>(buffer.data()), completion.bytes);
  }
  receive(buffer, completion.tag);
  return text;
}

}  // namespace urma::notify
