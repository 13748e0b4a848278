// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/receiver.h"

#include <cstring>

#include "plugins/nccl/log.h"

namespace urma::nccl {
Receiver::Receiver(SessionRef session, Jetty jetty, Segment memory)
    : memory_(std::move(memory)),
      board_(*reinterpret_cast<ReceiverBoard*>(memory_.bytes().data())),
      stage_(memory_.mapped() ? memory_.bytes().size() - sizeof(ReceiverBoard) : 0),
      link_(std::move(session), "receiver", std::move(jetty)) {
  for (uint32_t i = 0; i < slots; ++i) {
    outstanding_[i].request.receiver = this;
    outstanding_[i].request.index = i;
  }
}

Receiver::~Receiver() {
  for (Outstanding& one : outstanding_) {
    for (Target& target : one.targets) {
      if (target.copying != nullptr) link_.session().copier.finish(*target.copying);
    }
  }
}

Result<std::unique_ptr<Receiver>> Receiver::make(SessionRef session, const Imported& sender) {
  auto jetty = session->device.jetty(options_of_link(slots, 0, session->settings.timeout));
  if (!jetty) return jetty.error();
  const size_t stage_bytes = session->is_window() ? session->settings.stage_bytes : 0;
  auto memory = session->device.allocate(sizeof(ReceiverBoard) + stage_bytes, Rights::write);
  // A window without room gives private memory, which needs no stage.
  if (memory && !memory->mapped() && stage_bytes > 0) {
    memory = session->device.allocate(sizeof(ReceiverBoard), Rights::write);
  }
  if (!memory) return memory.error();
  std::unique_ptr<Receiver> out(
      new Receiver(std::move(session), std::move(*jetty), std::move(*memory)));
  if (const auto answered = out->answer(sender); !answered) return answered.error();
  return out;
}

Result<void> Receiver::answer(const Imported& sender) {
  auto greeting = make_greeting(Greeting::Kind::welcome, &link_.jetty(), &memory_);
  if (!greeting) return greeting.error();
  greeting_ = *greeting;
  link_.join(sender, probe_of(sender, offsetof(SenderBoard, probe)));
  const auto message = std::as_bytes(std::span(&greeting_, 1));
  if (!link_.post(urma::send(message, sender.jetty).tag(Link::greeting_tag),
                  "answering the sender")) {
    return error(Status::closed, "the device does not send");
  }
  return {};
}

void Receiver::poll() {
  if (!link_.poll([&](const Completion& done) { take(done); })) link_.wait();
}

void Receiver::take(const Completion& done) {
  link_.heard();
  const bool greeting = done.tag == Link::greeting_tag;
  if (!done.ok()) {
    link_.fail(done.status, greeting ? "answering the sender" : "posting a receive to the sender");
  }
  if (!done.ok() || greeting) return;
  outstanding_[done.tag].posting = false;
}

Code Receiver::announce(ReceiveBuffer& buffer, const void* data, size_t bytes, int tag,
                        const Registration* memory) {
  buffer = {};
  buffer.tag = tag;
  if (bytes == 0) return Code::success;
  if (memory == nullptr || !memory->contains(data, bytes)) {
    warn(
        "a receive of %zu bytes is not in the memory of its handle. Fix: register the whole "
        "buffer, and deregister it after its receives",
        bytes);
    return Code::invalid_usage;
  }
  const RemoteSegment segment = memory->segment->local();
  const auto* const at = static_cast<const std::byte*>(data);
  buffer.address = segment.address + static_cast<uint64_t>(at - memory->data);
  buffer.bytes = bytes;
  buffer.token_id = number(segment.token_id);
  buffer.token = number(segment.token);
  if (const auto part = stage_.take(bytes)) {
    buffer.stage = offsetof(ReceiverBoard, stages) + *part;
  }
  return Code::success;
}

Code Receiver::receive(int count, void* const* data, const size_t* bytes, const int* tags,
                       void* const* memories, Request** request) {
  *request = nullptr;
  const uint32_t slot_number = static_cast<uint32_t>(next_ % slots);
  Outstanding& free = outstanding_[slot_number];
  if (free.posting) poll();
  if (link_.failed()) return link_.code();
  if (free.request.used || free.posting) return Code::success;
  Slot& slot = out_[slot_number];
  for (int i = 0; i < count; ++i) {
    const auto* const memory =
        memories == nullptr ? nullptr : static_cast<const Registration*>(memories[i]);
    const Code announced = announce(slot.buffers[i], data[i], bytes[i], tags[i], memory);
    if (announced != Code::success) return announced;
    free.targets[i] = {.data = static_cast<std::byte*>(data[i]),
                       .memory = memory,
                       .generation = memory == nullptr ? 0 : memory->generation.load(),
                       .bytes = 0,
                       .filled = false,
                       .copying = nullptr};
    store(board_.arrived[slot_number][i], 0);
  }
  const std::span buffers(slot.buffers, static_cast<size_t>(count));
  const uint64_t at = offsetof(SenderBoard, slots) + slot_number * sizeof(Slot);
  auto work = urma::write(std::as_bytes(buffers), link_.board(), at).tag(slot_number);
  if (!link_.post(work, at + offsetof(Slot, mark), mark_of(next_, static_cast<uint32_t>(count)),
                  "posting a receive to the sender")) {
    return link_.code();
  }
  free.posting = true;
  free.stage_mark = stage_.mark();
  free.request.used = true;
  free.request.count = count;
  ++next_;
  *request = &free.request;
  return Code::success;
}

// ---- data that has arrived

// Puts the data of one buffer into its place. Returns false if that may not be done.
bool Receiver::place(Target& target, const ReceiveBuffer& buffer, uint64_t word) {
  target.filled = true;
  target.bytes = (word & ~in_stage) - 1;
  if ((word & in_stage) == 0 || target.bytes == 0) return true;
  if (target.bytes > buffer.bytes ||
      target.memory->generation.load(std::memory_order_acquire) != target.generation) {
    warn("memory was deregistered before its receive was done. Fix: deregister it afterwards");
    return false;
  }
  const std::byte* const from = memory_.bytes().data() + buffer.stage;
  target.copying = link_.session().copier.start(target.data, from, target.bytes);
  if (target.copying == nullptr) std::memcpy(target.data, from, target.bytes);
  return true;
}

// Returns whether all buffers of the slot are filled.
bool Receiver::fill(uint32_t number) {
  Outstanding& one = outstanding_[number];
  bool all = true;
  for (int i = 0; i < one.request.count; ++i) {
    Target& target = one.targets[i];
    if (!target.filled) {
      const uint64_t word = load(board_.arrived[number][i]);
      if (word != 0 && !place(target, out_[number].buffers[i], word)) {
        misused_ = Code::invalid_usage;
      }
    }
    if (target.copying != nullptr && Copier::take(*target.copying)) target.copying = nullptr;
    all = all && target.filled && target.copying == nullptr;
  }
  return all;
}

// Begins to copy data for which NCCL has not asked yet.
void Receiver::fill_all() {
  for (uint64_t sequence = oldest_; sequence < next_; ++sequence) {
    const uint32_t number = static_cast<uint32_t>(sequence % slots);
    if (outstanding_[number].request.used) fill(number);
  }
}

Code Receiver::test(Request& request, int* done, int* bytes) {
  *done = 0;
  // Data that has arrived counts, even if the link failed afterwards.
  if (!fill(request.index)) {
    poll();
    fill_all();
    if (misused_ != Code::success) return misused_;
    if (!fill(request.index)) return link_.code();
  }
  if (misused_ != Code::success) return misused_;
  link_.heard();
  for (int i = 0; i < request.count && bytes != nullptr; ++i) {
    bytes[i] = static_cast<int>(outstanding_[request.index].targets[i].bytes);
  }
  request.used = false;
  for (; oldest_ < next_ && !outstanding_[oldest_ % slots].request.used; ++oldest_) {
    stage_.release(outstanding_[oldest_ % slots].stage_mark);
  }
  *done = 1;
  return Code::success;
}

}  // namespace urma::nccl
