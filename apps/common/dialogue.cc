#include "apps/common/dialogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/output.h"

namespace urma::apps {
namespace {

// After this a message that its receiver does not take completes with an error.
constexpr Duration patience = std::chrono::seconds(2);

Jetty make_jetty(Device& device, const Dialogue::Options& options) {
  return must(device.jetty({.berths = options.berths,
                            .receives = options.receives,
                            .operation_timeout = {},
                            .receiver_timeout = patience,
                            .completions = options.completions}),
              "a Jetty for messages");
}

}  // namespace

Dialogue::Dialogue(Device& device, const Options& options)
    : options_(options),
      buffers_(options.receives * options.wording.most_bytes),
      jetty_(make_jetty(device, options)) {
  for (uint64_t tag = 1; tag <= options_.receives; ++tag) receive(tag);
}

void Dialogue::send(const RemoteJetty& to, const Message& message) {
  std::string made = to_text(message, options_.wording);
  admit(to.peer);
  const std::string& text = texts_[next_text_] = std::move(made);
  post(to.peer, urma::send(std::as_bytes(std::span(text)), to).tag(next_text_++));
}

void Dialogue::post(PeerId to, const Work& work) {
  admit(to);
  waiting_.push_back({to, work});
  push();
}

void Dialogue::admit(PeerId to) const {
  const auto its = static_cast<size_t>(std::ranges::count(waiting_, to, &Waiting::to));
  if (waiting_.size() < options_.most_waiting && its < options_.most_waiting_one) return;
  throw Failure(Exit::peer_lost,
                fmt::format("{} messages wait already, {} of them for this peer, which does not "
                            "take them. Fix: see whether the other side still runs",
                            waiting_.size(), its));
}

void Dialogue::push() {
  while (!waiting_.empty() && jetty_.post(waiting_.front().work) == 1) {
    ++outstanding_;
    waiting_.pop_front();
  }
}

// Buffer `tag` counts from 1: an immediate alone completes with tag 0.
std::span<std::byte> Dialogue::buffer(uint64_t tag) {
  const size_t bytes = options_.wording.most_bytes;
  return std::span(buffers_).subspan((tag - 1) * bytes, bytes);
}

// There is a slot for each buffer, so only a closed device refuses one; polling then reports that.
void Dialogue::receive(uint64_t tag) { (void)jetty_.receive(buffer(tag), tag); }

std::optional<std::string> Dialogue::handle(const Completion& completion) {
  if (completion.operation != Operation::receive) {
    if (outstanding_ > 0) --outstanding_;
    texts_.erase(completion.tag);
    push();
    return std::nullopt;
  }
  // After a close nothing arrives any more.
  const uint64_t tag = completion.tag;
  if (tag == 0 || tag > options_.receives || completion.status == Status::flushed) {
    return std::nullopt;
  }
  std::optional<std::string> text;
  if (completion.ok() && !completion.with_immediate) {
    text.emplace(reinterpret_cast<const char*>(buffer(tag).data()), completion.bytes);
  }
  receive(tag);
  return text;
}

void Dialogue::drop(const Completion& arrival, std::string_view why) {
  ++dropped_;
  last_dropped_ = fmt::format("from peer {}, Jetty {}: {}", arrival.from.index,
                              static_cast<uint32_t>(arrival.from_jetty), why);
}

std::string Dialogue::what_was_dropped() const {
  if (dropped_ == 0) return {};
  return fmt::format("{} {} not understood and dropped; the last one {}", dropped_,
                     dropped_ == 1 ? "message was" : "messages were", printable(last_dropped_));
}

}  // namespace urma::apps
