// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/streams.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_feed/options.h"

namespace urma::apps::feed {
namespace {

constexpr size_t most_feeds = 4096;
// A producer has fewer messages on their way.
constexpr uint64_t most_ahead = 1024;

}  // namespace

void Streams::drop(std::string why) {
  ++dropped_;
  last_ = std::move(why);
}

Streams::Stream* Streams::find(const Origin& from) {
  const auto feed = feeds_.find(from);
  if (feed == feeds_.end()) return nullptr;
  Stream& stream = streams_.at(feed->second);
  // An earlier connection of this feed is over.
  return stream.from == from ? &stream : nullptr;
}

void Streams::hello(const Origin& from, Device& device, std::string_view text) {
  try {
    const Message message = parse_message(text);
    if (message.type != "hello") throw NotUnderstood("\"" + message.type.substr(0, 40) + "\"");
    check_version(message, {.protocol = protocol, .self = "consumer", .peer = "producer"},
                  wording());
    const auto hello = body_of<Hello>(message);
    const RemoteJetty back = must(device.import(hello.jetty), "the producer").jetty;
    if (feeds_.size() >= most_feeds) throw NotUnderstood("there are too many producers");
    const auto [found, fresh] = streams_.try_emplace(hello.feed);
    Stream& stream = found->second;
    if (fresh) stream.first = stream.next = hello.first;
    stream.from = from;
    stream.back = back;
    stream.lines = hello.lines;
    stream.dirty = dirty_ = true;
    feeds_[from] = hello.feed;
  } catch (const std::exception& why) {
    drop(why.what());
  }
}

void Streams::payload(const Origin& from, uint64_t immediate, std::span<const std::byte> text) {
  Stream* const stream = find(from);
  const uint64_t number = number_in(immediate);
  if (stream == nullptr) return drop("its producer has sent no hello");
  if (text.size() < sizeof(Stamp)) return drop("it is too short");
  if (number < stream->next || stream->waiting.contains(number)) {
    ++stream->repeated;
    return;
  }
  if (number - stream->next >= most_ahead) return drop("its number is too high");
  Waiting& waiting = stream->waiting[number];
  waiting.topic = topic_in(immediate);
  std::memcpy(&waiting.posted, text.data(), sizeof waiting.posted);
  const auto bytes = text.subspan(sizeof waiting.posted);
  waiting.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<Streams::Delivered> Streams::deliver(const Origin& from) {
  Stream* const stream = find(from);
  if (stream == nullptr || stream->waiting.empty()) return std::nullopt;
  const auto first = stream->waiting.begin();
  if (first->first != stream->next) return std::nullopt;
  const Waiting& message = first->second;
  const Delivered delivered{.topic = message.topic, .posted = message.posted};
  if (print_) {
    out_ += message.bytes;
    if (stream->lines) out_ += '\n';
  }
  ++stream->messages;
  stream->bytes += message.bytes.size();
  ++stream->next;
  stream->dirty = dirty_ = true;
  stream->waiting.erase(first);
  return delivered;
}

bool Streams::ended(const Origin& from, uint64_t total) {
  Stream* const stream = find(from);
  if (stream == nullptr) return false;
  stream->total = total;
  return true;
}

void Streams::flush(std::span<Jetty* const> jetties) {
  if (!out_.empty() && !apps::write_all(STDOUT_FILENO, out_)) {
    throw Failure(Exit::error,
                  fmt::format("--print: writing to stdout: {}; the payloads that were "
                              "not written are not acknowledged. Fix: free some space, "
                              "or let the next program of the pipe read all output, "
                              "and start a consumer again",
                              std::strerror(errno)));
  }
  out_.clear();
  if (!dirty_) return;
  dirty_ = false;
  for (auto& [feed, stream] : streams_) {
    if (!stream.dirty) continue;
    const Work work = urma::send(std::span<const std::byte>(), stream.back).immediate(stream.next);
    const bool posted = jetties[std::get<0>(stream.from)]->post(work) == 1;
    outstanding_ += posted;
    stream.dirty = !posted;
    dirty_ = dirty_ || stream.dirty;
  }
}

void Streams::farewell(std::span<Jetty* const> jetties, std::string_view text) {
  for (const auto& [feed, stream] : streams_) {
    if (stream.total) continue;
    const Work work = urma::send(std::as_bytes(std::span(text)), stream.back);
    outstanding_ += jetties[std::get<0>(stream.from)]->post(work) == 1;
  }
}

Streams::Sums Streams::sums() const {
  Sums sums{.dropped = dropped_, .last = last_};
  for (const auto& [feed, stream] : streams_) {
    ++sums.feeds;
    sums.messages += stream.messages;
    sums.bytes += stream.bytes;
    sums.missing += stream.missing();
    sums.repeated += stream.repeated;
    sums.before += stream.first;
    sums.going_on += !stream.total;
  }
  return sums;
}

bool Streams::whole() const {
  return std::ranges::all_of(streams_, [](const auto& one) { return one.second.missing() == 0; });
}

}  // namespace urma::apps::feed
