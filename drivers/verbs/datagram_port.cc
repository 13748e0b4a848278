// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/datagram_port.h"

#include <algorithm>
#include <cerrno>

#include "base/bits.h"
#include "base/copy.h"
#include "base/failed.h"
#include "drivers/frame_pool.h"
#include "drivers/random_eid.h"

namespace urma::drivers::verbs {
namespace {

// The most bytes that the headers of UB add to the payload of a packet.
constexpr uint32_t overhead = 96;
constexpr uint32_t least_mtu = 1024;
constexpr size_t alignment = 64;
// Datagrams up to this size are copied into the queue, if the adapter can, which saves it a read.
constexpr uint32_t most_inline = 256;
// Less data is copied, which costs less than another piece.
constexpr size_t least_gathered = 1024;
// Shorter works are sent as datagrams.
constexpr uint32_t least_reliable = 16 * 1024;
// The head of a frame, its pieces and its tail.
constexpr unsigned most_parts = max_pieces + 2;
// How long a packet waits until its destination is known.
constexpr Duration patience = std::chrono::seconds(1);
constexpr Duration between_looks = std::chrono::milliseconds(1);

constexpr std::byte mark[] = {std::byte{0x55}, std::byte{0x42}};
constexpr size_t service_at = sizeof mark;

uint32_t mtu_of(const Adapter& adapter, size_t front_bytes) {
  uint32_t mtu = largest_rtp_mtu;
  while (mtu >= least_mtu && mtu + overhead + front_bytes > adapter.facts().mtu) mtu /= 2;
  return mtu >= least_mtu ? mtu : 0;
}

constexpr size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

Error too_small(const Adapter& adapter) {
  return failed(Status::unsupported, "verbs: ", adapter.place(), " carries datagrams of ",
                adapter.facts().mtu, " bytes, and the smallest UB packet needs more")
      .fix(
          "raise the MTU of its network interface, at each host and switch: as root, ip link set "
          "eth0 mtu 4200, or 9000 (rdma link shows which interface it is)");
}

}  // namespace

// The works of one call, with their parts.
struct DatagramPort::Batch {
  std::array<ibv_send_wr, burst> works;
  std::array<std::array<ibv_sge, most_parts>, burst> parts;
  size_t count = 0;

  void add(const void* data, size_t bytes, uint32_t key) {
    ibv_send_wr& work = works[count];
    parts[count][static_cast<size_t>(work.num_sge++)] = {reinterpret_cast<uintptr_t>(data),
                                                         static_cast<uint32_t>(bytes), key};
  }
};

Result<std::unique_ptr<PacketPort>> DatagramPort::open(const Settings& settings) {
  Result<Adapter> adapter = Adapter::open(settings);
  if (!adapter) return adapter.error();
  if (mtu_of(*adapter, front_bytes) == 0) return too_small(*adapter);
  const bool reliable = settings.reliable != Reliable::never &&
                        std::min(adapter->facts().reads_out, adapter->facts().reads_in) > 0;
  auto objects = std::make_unique<Objects>(std::move(*adapter), reliable);
  const Adapter::Facts& facts = objects->adapter.facts();
  const size_t bytes = frame_count * aligned(TxFrame::head_room + facts.mtu) +
                       receive_count * aligned(grh_bytes + facts.mtu);
  objects->memory = Region(bytes);
  objects->registered =
      objects->adapter.register_memory({objects->memory.data(), bytes}, IBV_ACCESS_LOCAL_WRITE);
  if (!objects->registered) return objects->adapter.cannot_register(bytes, errno);
  Result<DatagramQueue> queue =
      DatagramQueue::make(objects->adapter, {.sends = frame_count,
                                             .receives = receive_count,
                                             .pieces = std::min(most_parts, facts.most_pieces),
                                             .inline_bytes = most_inline});
  if (!queue) return queue.error();
  Result<std::unique_ptr<Resolver>> resolver = Resolver::start(objects->adapter, settings);
  if (!resolver) return resolver.error();
  objects->queue.emplace(std::move(*queue));
  objects->resolver = std::move(*resolver);
  objects->book.emplace(*objects->resolver);
  if (reliable) {
    objects->ends = ReliableEnds::make(
        objects->adapter, objects->segments, objects->queue->signals(),
        {.least_bytes = settings.reliable == Reliable::always ? 1 : least_reliable});
    if (!objects->ends) objects->segments.open_nothing();
  }
  return std::unique_ptr<PacketPort>(new DatagramPort(std::move(objects), settings));
}

DatagramPort::DatagramPort(std::unique_ptr<Objects> objects, const Settings& settings)
    : objects_(std::move(objects)),
      descriptors_{objects_->queue->descriptor(), objects_->resolver->news(),
                   objects_->ends ? objects_->ends->descriptor() : -1},
      gathers_(settings.gather),
      most_parts_(std::min(most_parts, objects_->adapter.facts().most_pieces)),
      slot_bytes_(aligned(TxFrame::head_room + objects_->adapter.facts().mtu)),
      buffer_bytes_(aligned(grh_bytes + objects_->adapter.facts().mtu)),
      largest_(objects_->adapter.facts().mtu - front_bytes),
      batch_(std::make_unique<Batch>()) {
  state_facts();
  state_settings(settings);
  for (uint32_t i = frame_count; i-- > 0;) {
    std::byte* const front = objects_->memory.data() + i * slot_bytes_;
    std::copy_n(mark, sizeof mark, front);
    store_be<2>(front + service_at, facts_.self.port);
    frames_[i].head = front + front_bytes;
    free_.push_back(&frames_[i]);
  }
  waiting_.reserve(most_waiting);
  post_all_buffers();
  objects_->resolver->serve(objects_->queue->pair());
}

DatagramPort::~DatagramPort() {
  // A forked child shares the queues with its parent, which goes on using them.
  if (getpid() != opener_) static_cast<void>(objects_.release());
}

void DatagramPort::state_facts() {
  const Adapter::Facts& adapter = objects_->adapter.facts();
  facts_.self = {adapter.gid.address, objects_->resolver->service()};
  facts_.eid = facts_.self.port == ub_port ? facts_.self.address : random_eid();
  facts_.mtu = mtu_of(objects_->adapter, front_bytes);
  facts_.buffer_bytes = receive_count * facts_.mtu;
  facts_.arms = true;
  facts_.line_bytes_per_second = adapter.line_bytes_per_second;
  facts_.description = objects_->adapter.place() + " (" + std::string(name(adapter.gid.kind)) +
                       ") at " + to_string(facts_.self) + ", MTU " + std::to_string(facts_.mtu) +
                       ", no ECN, " + (gathers_ ? "registered data gathered" : "data copied") +
                       (adapter.active ? "" : ", link down");
}

void DatagramPort::state_settings(const Settings& settings) {
  using enum Origin;
  const Adapter::Facts& adapter = objects_->adapter.facts();
  SettingList& all = facts_.settings;
  all = settings.options;
  all.push_back({"address", to_string(facts_.self), settings.service != 0 ? device_string : driver,
                 facts_.self.port != ub_port && settings.service == 0 ? "4792 is taken" : "",
                 "where peers reach this device"});
  all.push_back({"eid", to_string(facts_.eid), facts_.self.port == ub_port ? driver : drawn, "",
                 "the identity of this device"});
  all.push_back({"adapter", adapter.name, settings.adapter.empty() ? driver : device_string,
                 adapter.software ? "software, run by the kernel" : "", "the RDMA adapter"});
  all.push_back({"gid", std::to_string(adapter.gid.index), driver,
                 std::string(name(adapter.gid.kind)),
                 "the number of the address in the port's table"});
  all.push_back({"mtu", size_text(facts_.mtu), driver,
                 "datagrams have at most " + std::to_string(adapter.mtu) + " bytes",
                 "largest payload of a packet, in bytes"});
  all.push_back({"receive_buffer", size_text(facts_.buffer_bytes), driver,
                 std::to_string(receive_count) + " packets",
                 "the most bytes that wait for this device"});
  all.push_back({"inline", size_text(objects_->queue->inline_bytes()), driver, "",
                 "packets up to this size are copied into the adapter's queue"});
  all.push_back(
      {"transmit", gathers_ ? "gathered from " + size_text(least_gathered) + " on" : "copied",
       settings.gather ? driver : device_string, gathers_ ? "from registered segments" : "",
       "whether data is copied, or sent from the application's memory"});
  const bool reliable = objects_->ends != nullptr;
  const bool wished = settings.reliable != Reliable::never;
  all.push_back({"reliable",
                 reliable ? "from " + size_text(objects_->ends->least_bytes()) + " on" : "no",
                 settings.reliable == Reliable::automatic ? driver : device_string,
                 reliable ? "between registered segments"
                 : wished ? "the adapter has no room for reliable queue pairs, or sends no reads"
                          : "rc=never",
                 "works whose data the adapters move by themselves (RC)"});
  all.push_back({"locked_memory", size_text(objects_->memory.bytes()), driver, "ulimit -l",
                 "memory that the adapter has locked for packets"});
}

// ---- sending

size_t DatagramPort::lend(std::span<TxFrame*> frames) {
  size_t lent = 0;
  while (lent < frames.size() && !free_.empty()) {
    frames[lent++] = free_.back();
    free_.pop_back();
  }
  return lent;
}

void DatagramPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) free_.push_back(static_cast<Frame*>(frame));
}

size_t DatagramPort::send(std::span<TxFrame* const> frames, Time now) {
  for (TxFrame* lent : frames) {
    Frame& frame = static_cast<Frame&>(*lent);
    frame.number = taken_++;
    pass(frame, now);
  }
  flush();
  settle();
  counters_.frames_sent += frames.size();
  return frames.size();
}

// Lays the frame into the batch, or keeps it until its destination is known. A frame that is too
// long is not posted: the adapter would lose it and report success.
void DatagramPort::pass(Frame& frame, Time now) {
  if (gone_ || frame.bytes() > largest_) {
    ++counters_.send_failures;
    counters_.latest_failure = gone_ ? ENODEV : EMSGSIZE;
    return free_.push_back(&frame);
  }
  const Destination* const to = objects_->book->find(frame.to, now);
  if (to == nullptr) return keep_waiting(frame, now);
  if (batch_->count == burst) flush();
  lay(frame, *to);
}

// The packets for one destination take a part of the room: it may never answer.
void DatagramPort::keep_waiting(Frame& frame, Time now) {
  const auto before = std::ranges::count_if(
      waiting_, [&](const Waiting& one) { return one.frame->to == frame.to; });
  if (!objects_->book->awaits(frame.to) || waiting_.size() == most_waiting ||
      before == most_waiting_for_one) {
    ++counters_.unreachable;
    return free_.push_back(&frame);
  }
  copy_rest(frame, frame.head + frame.head_bytes);
  waiting_.push_back({&frame, now + patience});
}

// Adds the parts of a packet whose data stays where it is. Returns false, and adds nothing, if it
// has to be copied.
bool DatagramPort::gather(const Frame& frame) {
  if (!gathers_ || frame.bytes() < least_gathered) return false;
  if (frame.piece_count + 2u > most_parts_) return false;
  std::array<uint32_t, max_pieces> keys;
  for (unsigned i = 0; i < frame.piece_count; ++i) {
    const auto key = objects_->segments.key_of(frame.pieces[i].data, frame.pieces[i].bytes);
    if (!key) return false;
    keys[i] = *key;
  }
  const uint32_t own = objects_->registered->lkey;
  batch_->add(frame.head - front_bytes, front_bytes + frame.head_bytes, own);
  for (unsigned i = 0; i < frame.piece_count; ++i) {
    batch_->add(frame.pieces[i].data, frame.pieces[i].bytes, keys[i]);
  }
  std::byte* const tail = frame.head + frame.head_bytes;
  copy_bytes(tail, frame.tail.data(), frame.tail_bytes);
  batch_->add(tail, frame.tail_bytes, own);
  return true;
}

// Adds the parts of a packet that is copied behind its head.
void DatagramPort::add_whole(const Frame& frame) {
  const size_t bytes = front_bytes + frame.bytes();
  batch_->add(frame.head - front_bytes, bytes, objects_->registered->lkey);
  if (bytes <= objects_->queue->inline_bytes()) {
    batch_->works[batch_->count].send_flags = IBV_SEND_INLINE;
  }
}

void DatagramPort::lay(Frame& frame, const Destination& to) {
  begin_work(frame, to);
  if (!gather(frame)) {
    copy_rest(frame, frame.head + frame.head_bytes);
    add_whole(frame);
  }
  ++batch_->count;
}

// Begins the next work of the batch, which has no parts yet.
void DatagramPort::begin_work(Frame& frame, const Destination& to) {
  ibv_send_wr& work = batch_->works[batch_->count];
  work = {};
  work.wr_id = uint64_t{generation_} << 32 | static_cast<uint32_t>(posted_end_);
  work.sg_list = batch_->parts[batch_->count].data();
  work.opcode = IBV_WR_SEND;
  work.wr.ud = {.ah = to.handle, .remote_qpn = to.number, .remote_qkey = to.key};
  posted_[posted_end_++ % frame_count] = &frame;
}

// Posts the batch. Its last work gives a completion, which settles the others too.
void DatagramPort::flush() {
  if (batch_->count == 0) return;
  for (size_t i = 0; i + 1 < batch_->count; ++i) batch_->works[i].next = &batch_->works[i + 1];
  batch_->works[batch_->count - 1].send_flags |= IBV_SEND_SIGNALED;
  batch_->count = 0;
  if (gone_) return end_sends();
  ++counters_.calls_sent;
  if (const int why = objects_->queue->send(batch_->works[0]); why != 0) {
    counters_.latest_failure = why;
    restart();
  }
}

// Sends the packets whose destination has become known, and drops those that have waited too long.
void DatagramPort::send_waiting(Time now) {
  std::erase_if(waiting_, [&](const Waiting& one) {
    Frame& frame = *one.frame;
    const Destination* const to = gone_ ? nullptr : objects_->book->find(frame.to, now);
    if (to == nullptr) {
      if (!gone_ && now < one.until && objects_->book->awaits(frame.to)) return false;
      ++counters_.unreachable;
      free_.push_back(&frame);
      return true;
    }
    frame.number = taken_;
    if (batch_->count == burst) flush();
    begin_work(frame, *to);
    add_whole(frame);
    ++batch_->count;
    return true;
  });
  flush();
}

void DatagramPort::settle() {
  std::array<ibv_wc, burst> completions;
  bool failed = false;
  for (size_t count = burst; count == burst && !gone_;) {
    count = objects_->queue->poll_sent(completions);
    if (count == SIZE_MAX) {
      failed = true;
      break;
    }
    for (size_t i = 0; i < count; ++i) {
      const ibv_wc& one = completions[i];
      if (one.wr_id >> 32 != generation_) continue;
      if (one.status != IBV_WC_SUCCESS) failed = true;
      const uint32_t behind =
          static_cast<uint32_t>(one.wr_id) - static_cast<uint32_t>(posted_first_);
      for (uint32_t n = 0; n <= behind; ++n) {
        free_.push_back(posted_[posted_first_++ % frame_count]);
      }
    }
  }
  if (failed) restart();
  settled_ = posted_first_ == posted_end_ ? taken_ : posted_[posted_first_ % frame_count]->number;
}

// ---- receiving

std::byte* DatagramPort::buffer_at(uint32_t index) const {
  return objects_->memory.data() + frame_count * slot_bytes_ + index * buffer_bytes_;
}

void DatagramPort::post_buffers(std::span<const uint32_t> indices) {
  std::array<ibv_recv_wr, burst> works;
  std::array<ibv_sge, burst> places;
  while (!indices.empty() && !gone_) {
    const size_t count = std::min(indices.size(), burst);
    for (size_t i = 0; i < count; ++i) {
      places[i] = {reinterpret_cast<uintptr_t>(buffer_at(indices[i])),
                   static_cast<uint32_t>(buffer_bytes_), objects_->registered->lkey};
      works[i] = {.wr_id = uint64_t{generation_} << 32 | indices[i],
                  .next = i + 1 < count ? &works[i + 1] : nullptr,
                  .sg_list = &places[i],
                  .num_sge = 1};
    }
    if (const int why = objects_->queue->receive(works[0]); why != 0) {
      counters_.latest_failure = why;
    }
    indices = indices.subspan(count);
  }
}

// Posts the buffers that are not lent to the engine.
void DatagramPort::post_all_buffers() {
  std::array<uint32_t, receive_count> indices;
  size_t count = 0;
  for (uint32_t i = 0; i < receive_count; ++i) {
    if (!buffers_[i].lent) indices[count++] = i;
  }
  post_buffers(std::span(indices).first(count));
}

size_t DatagramPort::receive(std::span<RxFrame> frames, Time now) {
  received_at_ = now;
  tend(now);
  settle();
  std::array<ibv_wc, burst> completions;
  if (gone_) return 0;
  const size_t room = std::min(frames.size(), burst);
  const size_t count = objects_->queue->poll_received(std::span(completions).first(room));
  if (count == SIZE_MAX) {
    restart();
    return 0;
  }
  counters_.calls_received += count > 0 ? 1 : 0;
  std::array<uint32_t, burst> others;
  size_t other_count = 0;
  size_t kept = 0;
  bool failed = false;
  for (size_t i = 0; i < count; ++i) {
    const ibv_wc& one = completions[i];
    if (one.wr_id >> 32 != generation_) continue;
    if (one.status != IBV_WC_SUCCESS) {
      failed = true;
    } else if (take_in(one, frames[kept], now)) {
      ++kept;
    } else {
      ++counters_.malformed;
      others[other_count++] = static_cast<uint32_t>(one.wr_id);
    }
  }
  if (failed) {
    restart();
  } else {
    post_buffers(std::span(others).first(other_count));
  }
  counters_.frames_received += kept;
  return kept;
}

// Returns whether the buffer has a packet, which `out` then is.
bool DatagramPort::take_in(const ibv_wc& completion, RxFrame& out, Time now) {
  const auto index = static_cast<uint32_t>(completion.wr_id);
  const std::byte* const begin = buffer_at(index);
  const std::byte* const front = begin + grh_bytes;
  constexpr size_t before = grh_bytes + front_bytes;
  if (completion.byte_len <= before || (completion.wc_flags & IBV_WC_GRH) == 0) return false;
  if (!std::equal(std::begin(mark), std::end(mark), front)) return false;
  Buffer& buffer = buffers_[index];
  buffer.from = {sender_of(std::span<const std::byte, grh_bytes>(begin, grh_bytes)),
                 static_cast<uint16_t>(load_be<2>(front + service_at))};
  if (buffer.from.port == 0) return false;
  buffer.lent = true;
  objects_->book->heard(buffer.from, completion.src_qp, now);
  out = {.data = front + front_bytes,
         .bytes = static_cast<uint32_t>(completion.byte_len - before),
         .cookie = index,
         .from = &buffer.from};
  return true;
}

void DatagramPort::release(std::span<const RxFrame> frames) {
  std::array<uint32_t, burst> indices;
  while (!frames.empty()) {
    const size_t count = std::min(frames.size(), burst);
    for (size_t i = 0; i < count; ++i) {
      indices[i] = frames[i].cookie;
      buffers_[indices[i]].lent = false;
    }
    post_buffers(std::span(indices).first(count));
    frames = frames.subspan(count);
  }
}

void DatagramPort::arm() {
  objects_->queue->arm();
  if (objects_->ends) objects_->ends->arm();
}

void DatagramPort::disarm() {
  objects_->queue->disarm();
  objects_->resolver->clear_news();
  if (objects_->ends) objects_->ends->clear_news();
}

// Completions of sends give no signal, and one may say that the queue pair has failed.
Time DatagramPort::next_arrival() const {
  return waiting_.empty() && posted_first_ == posted_end_ ? never : received_at_ + between_looks;
}

// ---- failures

// The adapter reads no frame any longer.
void DatagramPort::end_sends() {
  while (posted_first_ < posted_end_) free_.push_back(posted_[posted_first_++ % frame_count]);
  settled_ = taken_;
}

// Resets the queue pair, which has failed. The packets in it are lost.
void DatagramPort::restart() {
  gone_ = objects_->resolver->gone() || !objects_->queue->reset();
  if (gone_) objects_->queue->silence();
  if (gone_ && objects_->ends) objects_->ends->fail_all();
  ++generation_;
  end_sends();
  post_all_buffers();
}

// Acts on what the resolver has found out.
void DatagramPort::tend(Time now) {
  if (gone_) return;
  if (objects_->resolver->gone() || objects_->resolver->queue_pair_failed()) restart();
  objects_->book->update(now, [&](const Endpoint&, bool known) {
    if (!known) ++counters_.unreachable;
  });
  if (!waiting_.empty()) send_waiting(now);
}

}  // namespace urma::drivers::verbs
