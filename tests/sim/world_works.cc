// SPDX-License-Identifier: Apache-2.0
// The works that applications post, and their outcomes.

#include <algorithm>
#include <atomic>
#include <sstream>

#include "tests/sim/pattern.h"
#include "tests/sim/world.h"

namespace urma::test {
namespace {

using Kind = WorkRecord::Kind;

}  // namespace

// ---- posting

void World::split(WorkRecord& record) {
  size_t at = 0;
  for (uint64_t pieces = prng_.between(2, max_buffers); pieces > 1; --pieces) {
    const size_t bytes = prng_.below(record.buffer.size() - at + 1);
    record.pieces.push_back({record.buffer.data() + at, bytes});
    at += bytes;
  }
  record.pieces.push_back({record.buffer.data() + at, record.buffer.size() - at});
}

void World::post_something(uint32_t index) {
  if (works_.size() >= options_.works) return;
  Host& host = hosts_[index];
  const auto target = static_cast<uint32_t>(prng_.below(hosts_.size()));
  const auto which = static_cast<uint32_t>(prng_.below(options_.jetties));
  HostJetty& jetty = host.jetties[which];
  if (jetty.jetty->vacant_berths() == 0) return;
  const auto target_jetty = static_cast<uint32_t>(prng_.below(options_.jetties));
  const Host::Import& imported = import(index, target, target_jetty);

  WorkRecord& record = works_.emplace_back();
  record.number = works_.size();
  record.host = index;
  record.life = host.life;
  record.target = target;
  record.target_life = hosts_[target].life;
  record.target_jetty = target_jetty;
  record.jetty = which;
  record.memory = hosts_[target].memory;
  record.signalled = !prng_.chance(options_.unsignalled);
  record.posted = network_->now();
  std::optional<Work> work = make_work(record, imported);
  if (work) work->tag(record.number).signalled = record.signalled;
  if (work && prng_.chance(options_.ordered)) draw_order(*work);
  if (!work || jetty.jetty->post(*work) == 0) {
    // There is no room in the memory or no vacant berth: undo what was prepared.
    if (work && record.kind == Kind::read) record.memory->end_read(record.offset);
    if (work && changes_memory(record.kind)) {
      record.memory->not_written(record.offset, record.number);
    }
    works_.pop_back();
    return;
  }
  if (record.kind == Kind::write_notify) hosts_[target].not_notified.push_back(record.number);
  ++jetty.outstanding;
}

std::optional<Work> World::make_work(WorkRecord& record, const Host::Import& import) {
  const Imported& target = import.what;
  if (prng_.chance(options_.adds)) return make_add(record, import);
  if (options_.lend > 0 && prng_.chance(options_.lend)) return make_borrow(record, import);
  const bool small = prng_.chance(0.5);
  record.bytes = prng_.below(small ? 200 : options_.largest + 1);
  const uint64_t dice = prng_.below(100);
  record.kind = dice < 40   ? Kind::write
                : dice < 60 ? Kind::write_immediate
                : dice < 80 ? Kind::read
                            : Kind::send;
  if (record.kind == Kind::read && !options_.reads) record.kind = Kind::write;
  if (prng_.chance(options_.forged)) record.kind = Kind::forged;
  if (record.kind == Kind::write && options_.notify > 0 && prng_.chance(options_.notify)) {
    record.kind = Kind::write_notify;
  }
  if (record.kind == Kind::send) record.bytes %= message_bytes + 1;
  // The work is one packet, whatever MTU is agreed: if a longer work is refused, packets of it that
  // lie inside the segment may be placed.
  if (record.kind == Kind::forged) record.bytes = std::clamp<uint64_t>(record.bytes, 1, 1024);
  record.offset = prng_.below(std::min<uint64_t>(memory_bytes, options_.reach) - record.bytes);
  if (record.kind != Kind::send && !record.memory->free_to_write(record.offset, record.bytes)) {
    return std::nullopt;
  }
  record.buffer.resize(record.bytes);
  if (record.kind == Kind::read) {
    record.memory->begin_read(record.offset, record.bytes);
  } else {
    fill_pattern(record.buffer, record.number);
    if (record.kind != Kind::send) {
      record.memory->begin_write(record.offset, record.bytes, record.number);
    }
  }
  if (record.bytes > 0 && prng_.chance(0.3)) split(record);
  const std::span<const Buffer> pieces = record.pieces;
  const std::span<std::byte> whole = record.buffer;

  // The peer may have left and come back between the two imports. Then it has another PeerId, and a
  // work that names both is refused.
  record.grouped = options_.grouped > 0 && prng_.chance(options_.grouped) &&
                   import.group.peer == target.jetty.peer;
  const RemoteJetty& to = record.grouped ? import.group : target.jetty;
  const uint8_t hint = record.grouped ? static_cast<uint8_t>(prng_.below(256)) : uint8_t{0};

  switch (record.kind) {
    case Kind::read:
      return pieces.empty() ? read(whole, target.segment, record.offset)
                            : read(pieces, target.segment, record.offset);
    case Kind::send: {
      Work work = pieces.empty() ? send(whole, to) : send(pieces, to);
      return work.immediate(record.number).hint(hint);
    }
    case Kind::forged: {
      // A wrong token, or a range that leaves the segment: the work must change nothing.
      RemoteSegment forged = target.segment;
      if (prng_.chance(0.5)) {
        forged.token = TokenValue(number(forged.token) ^ 1u << prng_.below(32));
        return write(whole, forged, record.offset);
      }
      forged.bytes += 2 * record.bytes;
      return write(whole, forged, memory_bytes - record.bytes + prng_.between(1, record.bytes));
    }
    default:
      break;
  }
  Work work = pieces.empty() ? write(whole, target.segment, record.offset)
                             : write(pieces, target.segment, record.offset);
  if (record.kind == Kind::write_immediate) work.to(to).immediate(record.number).hint(hint);
  if (record.kind == Kind::write_notify) {
    work.notify(import.words, record.number * notify_bytes, record.number);
  }
  return work;
}

// Each work adds its own number, so that no two of them can be confused.
Work World::make_add(WorkRecord& record, const Host::Import& import) {
  record.kind = Kind::add;
  record.counter = hosts_[record.target].counter;
  return fetch_add(import.counter, 0, record.number);
}

Work World::make_borrow(WorkRecord& record, const Host::Import& import) {
  record.kind = Kind::borrow;
  record.bytes = prng_.between(1, prng_.chance(0.5) ? 200 : lent_bytes);
  record.offset = prng_.below(lent_bytes - record.bytes + 1);
  record.buffer.resize(record.bytes);
  return read(std::span(record.buffer), import.lent, record.offset);
}

void World::draw_order(Work& work) {
  const uint64_t dice = prng_.below(10);
  if (dice < 4) {
    work.relaxed();
  } else if (dice < 8) {
    work.strong();
  } else {
    work.fenced(dice == 8 ? Fence::all : Fence::reads);
  }
}

const World::Host::Import& World::import(uint32_t host, uint32_t target, uint32_t jetty) {
  Host::Import& import = hosts_[host].imports[target][jetty];
  // Even a fresh import may be of an incarnation that ends before the work arrives.
  import.what = hosts_[host].device->import(hosts_[target].descriptors[jetty]).value();
  import.words =
      hosts_[host].device->import(hosts_[target].word_segment->descriptor()).value().segment;
  import.counter =
      hosts_[host].device->import(hosts_[target].counter_segment->descriptor()).value().segment;
  import.lent = hosts_[host].device->import(hosts_[target].lent_descriptor).value().segment;
  if (hosts_[target].group) {
    import.group = hosts_[host].device->import(hosts_[target].group->descriptor()).value().jetty;
  }
  import.life = hosts_[target].life;
  return import;
}

void World::post_closers() {
  first_closer_ = std::min<uint64_t>(first_closer_, works_.size() + 1);
  std::erase_if(closers_, [&](const std::pair<uint32_t, uint32_t>& closer) {
    Host& host = hosts_[closer.first];
    HostJetty& jetty = host.jetties[closer.second];
    if (jetty.jetty->vacant_berths() == 0) return false;
    const Imported& target = import(closer.first, closer.first, closer.second).what;
    WorkRecord& record = works_.emplace_back();
    record.number = works_.size();
    record.host = record.target = closer.first;
    record.life = record.target_life = host.life;
    record.jetty = closer.second;
    record.memory = host.memory;
    record.kind = Kind::read;
    record.offset = memory_bytes - 1;
    record.posted = network_->now();
    while (!record.memory->free_to_write(record.offset, 0)) --record.offset;
    record.memory->begin_read(record.offset, 0);
    ++jetty.outstanding;
    return jetty.jetty->post(
               read(std::span<std::byte>{}, target.segment, record.offset).tag(record.number)) == 1;
  });
}

// ---- what has come

void World::poll(uint32_t index) {
  Host& host = hosts_[index];
  if (!host.device || host.stopped) return;
  for (HostJetty& jetty : host.jetties) poll(index, jetty);
  if (!host.jfr) return;
  std::array<Completion, 16> out;
  for (size_t count = out.size(); count == out.size();) {
    count = host.jfr->poll(out);
    for (const Completion& completion : std::span(out).first(count)) {
      if (completion.status == Status::flushed) {
        throw Violation("a shared receive outlives a flush of its Jetties");
      }
      const auto tag = arrived(index, host.receive_buffers, completion);
      if (tag && !host.jfr->receive(host.receive_buffers[*tag], *tag)) {
        throw Violation("a receive is refused, though its slot was polled");
      }
    }
  }
}

void World::poll(uint32_t index, HostJetty& jetty) {
  std::array<Completion, 16> out;
  for (size_t count = out.size(); count == out.size();) {
    count = jetty.jetty->poll(out);
    for (const Completion& completion : std::span(out).first(count)) {
      if (completion.operation != Operation::receive) {
        completed(index, jetty, completion);
        continue;
      }
      const auto tag = arrived(index, jetty.receive_buffers, completion);
      if (tag && !jetty.flushing && !jetty.jetty->receive(jetty.receive_buffers[*tag], *tag)) {
        throw Violation("a receive is refused, though its slot was polled");
      }
    }
  }
  look_at_words(index);
}

void World::fail(const WorkRecord& record, const std::string& rule) const {
  std::ostringstream out;
  out << rule << ": work " << record.number << " (kind " << static_cast<int>(record.kind) << ", "
      << record.bytes << " B, host " << record.host << "." << record.life << " to " << record.target
      << "." << record.target_life << ", status " << name(record.status) << ", " << record.arrivals
      << " arrivals, posted at " << record.posted.time_since_epoch().count() << " ns, now "
      << network_->now().time_since_epoch().count() << " ns)";
  throw Violation(out.str());
}

void World::completed(uint32_t index, HostJetty& jetty, const Completion& completion) {
  if (completion.tag == 0 || completion.tag > works_.size()) throw Violation("a tag was changed");
  WorkRecord& record = works_[completion.tag - 1];
  if (record.completed) fail(record, "each work completes once");
  if (record.host != index) fail(record, "a work completes at its own Jetty");
  if (!record.signalled && completion.ok()) fail(record, "an unsignalled success is silent");
  record.status = completion.status;
  record.completed = true;
  if (record.kind == Kind::add && completion.ok()) record.found = completion.fetched();
  --jetty.outstanding;
  settle(record);
  if (completion.ok()) return imply(index, record.jetty, completion.tag - 1);
  // A host that has forged too much is ignored for a while, even by itself.
  if (completion.tag >= first_closer_) closers_.push_back({index, record.jetty});
}

// Records that the unsignalled works succeeded that this Jetty posted before a signalled success.
void World::imply(uint32_t index, uint32_t jetty, uint64_t before) {
  for (uint64_t i = before; i-- > 0;) {
    WorkRecord& earlier = works_[i];
    if (earlier.completed || earlier.signalled || earlier.host != index ||
        earlier.life != hosts_[index].life || earlier.jetty != jetty) {
      continue;
    }
    earlier.completed = true;
    --hosts_[index].jetties[jetty].outstanding;
    settle(earlier);
  }
}

bool World::not_executed(Status status) const {
  return status == Status::flushed || status == Status::peer_unreachable ||
         status == Status::peer_restarted || status == Status::receiver_not_ready ||
         (options_.window && options_.scarce && status == Status::no_resources);
}

// Returns whether the work was refused because its target was about to close.
bool World::taken_back(const WorkRecord& record) const {
  const Host& target = hosts_[record.target];
  const bool left = record.target_life < target.left.size() && target.left[record.target_life];
  return left && (record.status == Status::remote_access ||      // segments and Jetties
                  record.status == Status::remote_unsupported);  // a Jfr
}

// Returns whether the work was refused because its Jetty, or all Jetties of a group, were flushed.
bool World::not_received(const WorkRecord& record) {
  return record.status == Status::remote_access ||
         (record.grouped && record.status == Status::remote_unsupported);
}

// Checks that the status says what happened to the work.
void World::settle(WorkRecord& record) {
  ++completed_;
  if (record.status == Status::unknown) ++unknown_;
  const bool ok = record.status == Status::ok;
  if (record.kind == Kind::add) return settle_add(record);
  if (record.kind == Kind::borrow) return settle_borrow(record);
  Memory& memory = *record.memory;
  switch (record.kind) {
    case Kind::write:
    case Kind::write_immediate:
    case Kind::write_notify:
      if (ok) {
        memory.wrote(record.offset, record.number);
      } else if (not_executed(record.status)) {
        memory.not_written(record.offset, record.number);
      } else if (record.status == Status::unknown) {
        memory.unknown(record.offset);
      } else if (taken_back(record)) {
        memory.refused(record.offset);
      } else if (record.kind == Kind::write_immediate && not_received(record)) {
        memory.refused(record.offset);  // the data was accepted, but the Jetty was flushed
      } else {
        fail(record, "a valid write is not refused");
      }
      break;
    case Kind::forged:
      if (ok) fail(record, "a forged access is refused");
      memory.not_written(record.offset, record.number);
      break;
    case Kind::read:
      if (ok) memory.check_read(record.offset, record.buffer, record.number);
      memory.end_read(record.offset);
      break;
    case Kind::send:
      if (!ok && !not_executed(record.status) && record.status != Status::unknown &&
          !not_received(record) && !taken_back(record)) {
        fail(record, "a valid message is not refused");
      }
      break;
    case Kind::add:
    case Kind::borrow:
      break;
  }
  // The application may use the buffer again: overwrite it, so that later reads and writes of it
  // are detected.
  std::fill(record.buffer.begin(), record.buffer.end(), scribble);
}

void World::settle_add(WorkRecord& record) {
  if (record.status == Status::ok) {
    record.counter->added(record.number, record.found, record.number);
  } else if (record.status == Status::unknown) {
    record.counter->may_have_added(record.number);
  } else if (!not_executed(record.status) && !taken_back(record)) {
    fail(record, "a valid addition is not refused");
  }
}

// Checks a read of lent memory. The memory may have been revoked before or meanwhile. If it was,
// the read must not return the bytes that were there afterwards.
void World::settle_borrow(WorkRecord& record) {
  const auto good = [](std::byte byte) { return byte == lent_byte; };
  if (record.status == Status::ok) {
    if (!std::ranges::all_of(record.buffer, good))
      fail(record, "a read returns the bytes that its owner shared");
  } else if (!not_executed(record.status) && record.status != Status::unknown &&
             record.status != Status::remote_access && !taken_back(record)) {
    fail(record, "a valid read is not refused for another reason");
  }
  std::ranges::fill(record.buffer, scribble);
}

// Looks for sixteen scribbled bytes in a row. No work's pattern contains such a row.
bool World::has_scribble(std::span<const std::byte> packet) {
  constexpr size_t row = 16;
  // Each row of scribbled bytes contains one of these bytes.
  for (size_t at = row - 1; at < packet.size(); at += row) {
    if (packet[at] != scribble) continue;
    size_t first = at;
    size_t end = at + 1;
    while (first > 0 && packet[first - 1] == scribble) --first;
    while (end < packet.size() && packet[end] == scribble) ++end;
    if (end - first >= row) return true;
  }
  return false;
}

// Checks the counter of a host at the end of an incarnation, or of the world.
void World::check_counter(uint32_t index) const {
  const Host& host = hosts_[index];
  uint64_t under_way = 0;
  for (const WorkRecord& work : works_) {
    if (work.counter == host.counter && !work.completed) under_way += work.number;
  }
  host.counter->check(std::atomic_ref(*host.counted).load(), under_way);
}

// Returns the tag of the buffer that is free again, if the arrival filled one.
std::optional<uint64_t> World::arrived(uint32_t index, Buffers& buffers,
                                       const Completion& completion) {
  if (completion.status == Status::flushed)
    return std::nullopt;  // the receive is posted again after the flush
  if (!completion.ok() || completion.immediate == 0 || completion.immediate > works_.size()) {
    throw Violation("an arrival is impossible");
  }
  WorkRecord& record = works_[completion.immediate - 1];
  const std::vector<HostJetty>& jetties = hosts_[index].jetties;
  const bool to_one =
      record.grouped
          ? std::ranges::any_of(
                jetties, [&](const HostJetty& one) { return one.jetty->id() == completion.jetty; })
          : completion.jetty == jetties[record.target_jetty].jetty->id();
  if (!to_one) {
    fail(record, "an arrival names the Jetty it came to");
  }
  count_arrival(index, record);
  if (completion.bytes != record.bytes) fail(record, "an arrival reports its length");
  if (record.kind == Kind::write_immediate) {
    record.memory->arrived(record.offset, record.number);
    return std::nullopt;
  }
  if (record.kind != Kind::send) fail(record, "only messages and immediates arrive");
  std::vector<std::byte>& buffer = buffers[completion.tag];
  if (!has_pattern(std::span(buffer).first(record.bytes), record.number)) {
    fail(record, "a message arrives whole");
  }
  std::fill(buffer.begin(), buffer.end(), scribble);
  return completion.tag;
}

void World::look_at_words(uint32_t index) {
  Host& host = hosts_[index];
  std::erase_if(host.not_notified, [&](uint64_t number) {
    const std::atomic_ref word(host.words[number]);
    const uint64_t seen = word.load(std::memory_order_acquire);
    if (seen == 0) return false;
    WorkRecord& record = works_[number - 1];
    if (seen != number) fail(record, "a notification is the value that was posted");
    count_arrival(index, record);
    record.memory->arrived(record.offset, number);
    word.store(
        0,
        std::memory_order_relaxed);  // if the notification is repeated, that is detected at the end
    return true;
  });
}

void World::count_arrival(uint32_t index, WorkRecord& record) {
  ++record.arrivals;
  if (record.target != index || record.target_life != hosts_[index].life) {
    fail(record, "a message arrives where it was sent");
  }
  if (record.arrivals > 1) fail(record, "a message, immediate or notification arrives once");
  if (record.completed && not_executed(record.status))
    fail(record, "not executed means not executed");
}

void World::check_end() {
  for (const WorkRecord& work : works_) {
    const bool tells = work.kind == Kind::send || work.kind == Kind::write_immediate ||
                       work.kind == Kind::write_notify;
    const bool target_lives = work.target_life == hosts_[work.target].life;
    if (tells && work.status == Status::ok && !work.abandoned && target_lives &&
        work.arrivals != 1) {
      fail(work, "a completed message, immediate or notification has arrived");
    }
    for (const std::byte byte : work.buffer) {
      if (byte != scribble && !work.abandoned)
        fail(work, "a buffer is left alone after its completion");
    }
  }
  for (const auto& memory : memories_) memory->check_all("at the end");
  if (window_) check_rings();
  for (Host& host : hosts_) {
    if (std::ranges::any_of(host.words, [](uint64_t word) { return word != 0; })) {
      throw Violation("a notification came twice, or belonged to no work");
    }
    check_counter(static_cast<uint32_t>(&host - hosts_.data()));
    const Statistics statistics = host.device->stats().value();
    // The data of a read may be sent again after it was answered, from memory that has changed
    // since.
    if (options_.impairment.corrupt == 0 && !options_.reads && statistics.dropped_icrc > 0) {
      throw Violation("a packet left with another ICRC than its bytes': memory was read too late");
    }
    if (statistics.dropped_malformed > 0) throw Violation("this library sent a malformed packet");
  }
}

}  // namespace urma::test
