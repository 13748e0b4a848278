// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/sender.h"

#include "plugins/nccl/log.h"

namespace urma::nccl {
namespace {

std::span<std::byte> bytes_of(auto& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace

Sender::Sender(SessionRef session, Jetty jetty, Segment memory)
    : memory_(std::move(memory)),
      board_(*reinterpret_cast<SenderBoard*>(memory_.bytes().data())),
      link_(std::move(session), "sender", std::move(jetty)) {
  for (uint32_t i = 0; i < most_sends; ++i) {
    requests_[i].sender = this;
    requests_[i].index = i;
  }
}

Result<std::unique_ptr<Sender>> Sender::make(SessionRef session, const void* handle) {
  const auto listener = read_handle(handle);
  if (!listener) return listener.error();
  auto jetty = session->device.jetty(options_of_link(most_sends, 2, session->settings.timeout));
  if (!jetty) return jetty.error();
  auto memory = session->device.allocate(sizeof(SenderBoard), Rights::write);
  if (!memory) return memory.error();
  std::unique_ptr<Sender> out(
      new Sender(std::move(session), std::move(*jetty), std::move(*memory)));
  if (const auto greeted = out->greet(*listener); !greeted) return greeted.error();
  return out;
}

Result<void> Sender::greet(const Descriptor& listener) {
  Device& device = link_.session().device;
  auto there = device.import(to_string(listener));
  if (!there) return there.error();
  auto greeting = make_greeting(Greeting::Kind::hello, &link_.jetty(), &memory_);
  if (!greeting) return greeting.error();
  out_ = *greeting;
  auto probe = make_greeting(Greeting::Kind::probe, nullptr, nullptr);
  if (!probe) return probe.error();
  probe_ = *probe;
  // The listener is the peer until the receiver has answered.
  link_.join(*there, urma::send(bytes_of(probe_), there->jetty));
  const auto work = urma::send(bytes_of(out_), there->jetty).tag(Link::greeting_tag);
  if (!link_.jetty().receive(bytes_of(in_)) || !link_.post(work, "greeting the listener")) {
    return error(Status::closed, "the device does not send");
  }
  return {};
}

Result<bool> Sender::connect() {
  poll();
  if (refused_) return *refused_;
  if (joined_) return true;
  if (link_.failed()) return error(Status::peer_unreachable, "the peer does not connect");
  return false;
}

// ---- what arrives

void Sender::poll() {
  if (!link_.poll([&](const Completion& done) { take(done); })) link_.wait();
}

void Sender::take(const Completion& done) {
  link_.heard();
  if (done.operation == Operation::receive) return accept(done);
  if (done.tag == Link::greeting_tag) {
    if (!done.ok()) link_.fail(done.status, "greeting the listener");
    return;
  }
  if (!done.ok()) return link_.fail(done.status, "writing to the receiver");
  requests_[done.tag].done = true;
}

void Sender::accept(const Completion& arrival) {
  if (joined_ || !arrival.ok()) return;
  auto peer = read_greeting(link_.session().device, in_, arrival.bytes);
  if (!peer) {
    refused_ = peer.error();
    return;
  }
  link_.join(*peer, probe_of(*peer, offsetof(ReceiverBoard, probe)));
  joined_ = true;
}

// ---- sends

Sender::Found Sender::find(int tag) const {
  for (uint64_t sequence = head_; sequence < head_ + slots; ++sequence) {
    const uint32_t number = static_cast<uint32_t>(sequence % slots);
    const Slot& slot = board_.slots[number];
    const uint64_t mark = load(slot.mark);
    // The receiver posts in order, so nothing is behind a slot that has an older mark.
    if (mark >> 8 != sequence + 1) return {};
    const uint32_t count = std::min<uint32_t>(mark & 255, most_receives);
    for (uint32_t i = 0; i < count; ++i) {
      if ((taken_[number] >> i & 1) == 0 && slot.buffers[i].tag == tag) {
        return {&slot.buffers[i], number, i};
      }
    }
  }
  return {};
}

void Sender::take(const Found& found) {
  taken_[found.slot] = static_cast<uint8_t>(taken_[found.slot] | 1u << found.index);
  for (;;) {
    const uint32_t number = static_cast<uint32_t>(head_ % slots);
    const uint64_t mark = load(board_.slots[number].mark);
    const uint32_t count = std::min<uint32_t>(mark & 255, most_receives);
    if (mark >> 8 != head_ + 1 || taken_[number] != (1u << count) - 1) return;
    taken_[number] = 0;
    ++head_;
  }
}

Request* Sender::free_request() {
  for (uint32_t i = 0; i < most_sends; ++i) {
    Request& request = requests_[(next_request_ + i) % most_sends];
    if (request.used) continue;
    next_request_ = (next_request_ + i + 1) % most_sends;
    return &request;
  }
  return nullptr;
}

// Data goes to the stage, if the board is memory that both processes map. Otherwise it goes to its
// place; so does what one packet holds, if a packet has to follow anyway.
bool Sender::post(const Found& found, std::span<const std::byte> data, uint64_t tag) {
  constexpr const char* doing = "writing to the receiver";
  const RemoteSegment& board = link_.board();
  const ReceiveBuffer& to = *found.buffer;
  const uint64_t word_at = offsetof(ReceiverBoard, arrived) +
                           (uint64_t{found.slot} * most_receives + found.index) * sizeof(uint64_t);
  const uint64_t word = data.size() + 1;
  if (to.stage != 0 && board.mapped() && (link_.is_direct() || data.size() > most_packet_bytes)) {
    auto work = urma::write(data, board, to.stage).tag(tag);
    return link_.post(work, word_at, word | in_stage, doing);
  }
  const RemoteSegment room{.peer = board.peer,
                           .address = to.address,
                           .bytes = to.bytes,
                           .token_id = TokenId(to.token_id),
                           .token = TokenValue(to.token),
                           .rights = Rights::write};
  // A buffer of 0 bytes has no segment.
  const RemoteSegment& there = data.empty() ? board : room;
  return link_.post(urma::write(data, there).notify(board, word_at, word).tag(tag), doing);
}

Code Sender::send(const void* data, size_t bytes, int tag, Request** request) {
  *request = nullptr;
  Found found = find(tag);
  if (found.buffer == nullptr) {
    poll();
    found = find(tag);
  }
  if (link_.failed()) return link_.code();
  Request* const free = found.buffer == nullptr ? nullptr : free_request();
  if (free == nullptr) return Code::success;
  if (bytes > found.buffer->bytes) {
    warn(
        "a send of %zu bytes meets a receive of %llu bytes with the tag %d. Fix: let both ranks "
        "give the same counts and data types",
        bytes, static_cast<unsigned long long>(found.buffer->bytes), tag);
    return Code::invalid_usage;
  }
  const std::span memory(static_cast<const std::byte*>(data), bytes);
  free->done = false;
  if (!post(found, memory, free->index)) return link_.code();
  take(found);
  free->used = true;
  free->bytes = bytes;
  *request = free;
  return Code::success;
}

Code Sender::test(Request& request, int* done, int* bytes) {
  if (!request.done) poll();
  *done = request.done ? 1 : 0;
  if (!request.done) return link_.code();
  if (bytes != nullptr) *bytes = static_cast<int>(request.bytes);
  request.used = false;
  return Code::success;
}

}  // namespace urma::nccl
