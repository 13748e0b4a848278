// SPDX-License-Identifier: Apache-2.0
#include "apps/common/dialogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/output.h"

namespace urma::apps {
namespace {

Jetty make_jetty(Device& device, const Dialogue::Options& options) {
  return must(device.jetty({.berths = options.berths,
                            .receives = options.receives,
                            .operation_timeout = options.patience,
                            .receiver_timeout = options.patience,
                            .completions = options.completions}),
              "a Jetty for messages");
}

Failure crowded(size_t waiting, std::string_view peers) {
  return {Exit::peer_lost,
          fmt::format("{} messages wait for {}. Fix: check whether the other side still runs",
                      waiting, peers)};
}

std::string origin(const Completion& arrival, std::string_view why) {
  return fmt::format("from peer {}, Jetty {}: {}", arrival.from.index,
                     static_cast<uint32_t>(arrival.from_jetty), why);
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
  Peer& peer = admit(to.peer);
  const std::string& text = texts_[next_text_] = std::move(made);
  queue(peer, urma::send(std::as_bytes(std::span(text)), to).tag(next_text_++));
}

void Dialogue::post(PeerId to, const Work& work) { queue(admit(to), work); }

Dialogue::Peer& Dialogue::admit(PeerId to) {
  const auto peer = std::ranges::find(peers_, to, &Peer::id);
  const size_t its = peer == peers_.end() ? 0 : peer->waiting.size();
  if (its >= options_.most_waiting_one) throw crowded(its, "this peer, which does not take them");
  if (waiting_ >= options_.most_waiting) throw crowded(waiting_, "peers that do not take them");
  return peer == peers_.end() ? peers_.emplace_back(to) : *peer;
}

void Dialogue::queue(Peer& peer, const Work& work) {
  peer.waiting.push_back(work);
  ++waiting_;
  push();
}

// After each work its peer moves to the end, so that the others come first.
void Dialogue::push() {
  const auto may_post = [this](const Peer& peer) {
    return !peer.waiting.empty() && peer.berths < options_.berths_one;
  };
  for (;;) {
    const auto next = std::ranges::find_if(peers_, may_post);
    if (next == peers_.end() || jetty_.post(next->waiting.front()) != 1) return;
    posted_.emplace(next->waiting.front().tag_value, next);
    next->waiting.pop_front();
    --waiting_;
    ++next->berths;
    peers_.splice(peers_.end(), peers_, next);
  }
}

// Called when a work with this tag has completed.
void Dialogue::release(uint64_t tag) {
  texts_.erase(tag);
  const auto posted = posted_.find(tag);
  if (posted == posted_.end()) return;
  const auto peer = posted->second;
  posted_.erase(posted);
  if (--peer->berths == 0 && peer->waiting.empty()) peers_.erase(peer);
  push();
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
    release(completion.tag);
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
  dropped_ = {dropped_.count + 1, origin(arrival, why)};
}

void Dialogue::leave_unanswered(const Completion& arrival, std::string_view why) {
  unanswered_ = {unanswered_.count + 1, origin(arrival, why)};
}

std::vector<std::string> Dialogue::complaints() const {
  std::vector<std::string> lines;
  const auto add = [&](const Unused& unused, std::string_view one, std::string_view many) {
    if (unused.count == 0) return;
    lines.push_back(fmt::format("{} {}; the last one {}", unused.count,
                                unused.count == 1 ? one : many, printable(unused.last)));
  };
  add(dropped_, "message was not understood and dropped",
      "messages were not understood and dropped");
  add(unanswered_, "message could not be answered", "messages could not be answered");
  return lines;
}

}  // namespace urma::apps
