// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/remote_ends.h"

#include <algorithm>
#include <cstring>

#include "drivers/sim/network.h"

namespace urma::drivers::sim {
namespace {

// The delay of one way, even if no option asks for one.
constexpr Duration least_way(1000);
// A device that gets no answer repeats what it has sent after this time, so many times.
constexpr Duration repeats_after = std::chrono::milliseconds(1);
constexpr uint32_t most_repeats = 30;
// Making, connecting or destroying an end takes up to this time.
constexpr uint64_t longest_change_ns = 50'000;

// An end has another number after a restart of its process, so the number is enough.
RemoteAccess::Description describe(uint64_t number) {
  RemoteAccess::Description out{};
  std::memcpy(out.data(), &number, sizeof number);
  return out;
}

uint64_t number_in(const RemoteAccess::Description& description) {
  uint64_t number = 0;
  std::memcpy(&number, description.data(), sizeof number);
  return number;
}

}  // namespace

RemoteEnds::RemoteEnds(Network& network, const OpenMemory& memory, const Settings& settings)
    : network_(network), memory_(memory), settings_(settings) {}

RemoteEnds::~RemoteEnds() { vanish(); }

void RemoteEnds::vanish() {
  dead_ = true;
  for (End& end : ends_) {
    if (end.state == State::none) continue;
    network_.pairs_.remove(end.number);
    if (end.state == State::stopping) destroy(end);
  }
}

// ---- ends

RemoteEnds::End* RemoteEnds::find(Handle end) {
  const bool known = end.index < ends_.size() && ends_[end.index].generation == end.generation &&
                     ends_[end.index].state != State::none;
  return known ? &ends_[end.index] : nullptr;
}

RemoteEnds::End* RemoteEnds::find(uint64_t number) {
  const auto found = std::ranges::find_if(
      ends_, [&](const End& end) { return end.state != State::none && end.number == number; });
  return found != ends_.end() ? &*found : nullptr;
}

// A device whose end is being destroyed may still do all that it did before.
bool RemoteEnds::is_connected(const End& end) {
  return end.state == State::connected ||
         (end.state == State::stopping && end.was == State::connected);
}

Duration RemoteEnds::way() {
  const Impairment& wire = network_.faults.impairment;
  const Duration least = least_way + settings_.delay + wire.delay;
  const Duration most = least / 2 + wire.jitter;
  return least + Duration(static_cast<int64_t>(
                     network_.prng_.below(static_cast<uint64_t>(most.count()) + 1)));
}

// Calls the function with an end after a while, if it still exists then.
template <class Function>
void RemoteEnds::later(uint64_t number, Duration delay, Function&& function) {
  network_.pairs_.at(network_.now_ + delay, [&wire = network_.pairs_, number, function] {
    RemoteEnds* const owner = wire.owner_of(number);
    End* const end = owner != nullptr ? owner->find(number) : nullptr;
    if (end != nullptr) function(*owner, *end);
  });
}

void RemoteEnds::tell(const End& end, News::What what, const Description& own) {
  news_.push_back({.end = handle_of(end), .what = what, .own = own});
  network_.wake(settings_.place);
}

Handle RemoteEnds::make(bool) {
  const auto free = std::ranges::find(ends_, State::none, &End::state);
  if (free == ends_.end() || dead_) return {};
  *free = {.generation = free->generation + 1,
           .state = State::new_,
           .number = network_.pairs_.add(*this)};
  const Duration takes(static_cast<int64_t>(network_.prng_.below(longest_change_ns)));
  later(free->number, takes, [](RemoteEnds& at, End& end) {
    if (end.state != State::new_) return;
    at.tell(end, News::What::made, describe(end.number));
  });
  return handle_of(*free);
}

void RemoteEnds::connect(Handle handle, const Description& other, const Eid&) {
  const End* const end = find(handle);
  if (end == nullptr || dead_) return;
  const Duration takes(static_cast<int64_t>(network_.prng_.below(longest_change_ns)));
  later(end->number, takes, [number = number_in(other)](RemoteEnds& at, End& one) {
    if (one.state != State::new_) return;
    one.state = State::connected;
    one.other = number;
    at.tell(one, News::What::connected);
  });
}

void RemoteEnds::stop(Handle handle) {
  End* const end = find(handle);
  if (end == nullptr || end->state == State::stopping) return;
  end->was = std::exchange(end->state, State::stopping);
  if (dead_) return destroy(*end);
  const Duration takes(static_cast<int64_t>(network_.prng_.below(longest_change_ns)));
  later(end->number, takes, [](RemoteEnds& at, End& one) { at.destroy(one); });
}

void RemoteEnds::destroy(End& end) {
  for (Transfer& one : transfers_) {
    if (one.end == end.number) finish(one, false);
  }
  network_.pairs_.remove(end.number);
  tell(end, News::What::stopped);
  end.state = State::none;
}

void RemoteEnds::fail(End& end) {
  if (end.state == State::stopping) end.was = State::failed;
  if (end.state != State::new_ && end.state != State::connected) return;
  end.state = State::failed;
  tell(end, News::What::failed);
}

size_t RemoteEnds::news(std::span<News> out) {
  if (!ended_.empty()) return 0;
  const size_t count = std::min(out.size(), news_.size());
  const auto end = news_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(news_.begin(), end, out.begin());
  news_.erase(news_.begin(), end);
  if (!news_.empty()) network_.wake(settings_.place);
  return count;
}

// ---- transfers

RemoteEnds::Transfer* RemoteEnds::find(const Packet& packet) {
  Transfer& transfer = transfers_[packet.transfer];
  const bool same = transfer.end == packet.from && transfer.generation == packet.generation;
  return same ? &transfer : nullptr;
}

template <class Function>
void RemoteEnds::for_each_part(const Transfer& transfer, Function&& function) {
  uint32_t skip = transfer.from;
  uint32_t left = transfer.bytes;
  for (const Piece& piece : transfer.pieces) {
    const uint32_t skipped = std::min(skip, piece.bytes);
    const uint32_t bytes = std::min(piece.bytes - skipped, left);
    skip -= skipped;
    left -= bytes;
    if (bytes > 0) function(const_cast<std::byte*>(piece.data + skipped), bytes);
  }
}

bool RemoteEnds::may_use(const Transfer& transfer) const {
  bool may = true;
  for_each_part(transfer, [&](const std::byte* data, uint32_t bytes) {
    may = may && memory_.covers(data, bytes);
  });
  return may || settings_.any_memory;
}

RemoteAccess::Begun RemoteEnds::begin(Handle handle, const Task& task) {
  End* const end = find(handle);
  if (end == nullptr || end->state != State::connected || dead_) return Begun::refused;
  const auto free = std::ranges::find(transfers_, uint64_t{0}, &Transfer::end);
  if (end->transfers == depth) return Begun::full;
  if (free == transfers_.end()) return Begun::refused;
  free->number = task.number;
  free->read = task.read;
  free->from = task.from;
  free->bytes = task.bytes;
  free->pieces.assign(task.pieces.begin(), task.pieces.end());
  if (!may_use(*free)) return Begun::refused;
  free->end = end->number;
  ++free->generation;
  ++end->transfers;
  const auto index = static_cast<uint32_t>(free - transfers_.begin());
  later(end->number, way() / 4,
        [index, generation = free->generation, there = task.there](RemoteEnds& at, End&) {
          at.leave(index, generation, there);
        });
  return Begun::begun;
}

void RemoteEnds::finish(Transfer& transfer, bool done) {
  if (End* const end = find(transfer.end)) --end->transfers;
  transfer.end = 0;
  ended_.push_back({.number = transfer.number, .done = done});
  network_.wake(settings_.place);
}

size_t RemoteEnds::ended(std::span<Ended> out) {
  const size_t count = std::min(out.size(), ended_.size());
  const auto end = ended_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(ended_.begin(), end, out.begin());
  ended_.erase(ended_.begin(), end);
  if (!ended_.empty()) network_.wake(settings_.place);
  return count;
}

void RemoteEnds::leave(uint32_t index, uint32_t generation, There there) {
  Transfer& transfer = transfers_[index];
  End* const end = find(transfer.end);
  if (end == nullptr || transfer.generation != generation || !is_connected(*end)) return;
  if (!may_use(transfer)) return fail(*end);
  Packet packet{.from = end->number,
                .to = end->other,
                .from_place = settings_.place,
                .transfer = index,
                .generation = generation,
                .read = transfer.read,
                .there = there,
                .bytes = transfer.bytes,
                .data = {}};
  if (!transfer.read) {
    for_each_part(transfer, [&](const std::byte* data, uint32_t bytes) {
      packet.data.insert(packet.data.end(), data, data + bytes);
    });
    network_.faults.show(settings_.self, packet.data);
  }
  const Faults::OfPairs& faults = network_.faults.pairs;
  Duration delay = way();
  if (faults.late > 0 && network_.prng_.chance(faults.late)) {
    delay += Duration(static_cast<int64_t>(
        network_.prng_.below(static_cast<uint64_t>(faults.late_up_to.count()) + 1)));
  }
  network_.pairs_.at(network_.now_ + delay,
                     [&network = network_, packet] { arrive(network, packet); });
}

// The packet has reached the other end, if that still exists.
void RemoteEnds::arrive(Network& network, Packet packet) {
  if (network.faults.pairs.stuck) {
    return network.pairs_.at(network.now_ + repeats_after,
                             [&network, packet] { arrive(network, packet); });
  }
  RemoteEnds* const there = network.pairs_.owner_of(packet.to);
  End* const end = there != nullptr ? there->find(packet.to) : nullptr;
  const bool reaches = end != nullptr && is_connected(*end) && end->other == packet.from &&
                       !network.severed(packet.from_place, there->settings_.place, packet.bytes);
  if (!reaches) return repeat(network, std::move(packet));
  std::byte* const memory = there->memory_.at(packet.there, packet.bytes, !packet.read);
  if (memory == nullptr) {
    there->fail(*end);
    return there->refuse(packet);
  }
  if (there->suffers(*end, packet, memory)) return;
  execute(network, *there, packet, memory);
  if (!packet.late) there->answer(std::move(packet));
}

// Nothing answers. The device repeats the packet, and gives the end up in the end.
void RemoteEnds::repeat(Network& network, Packet packet) {
  RemoteEnds* const owner = network.pairs_.owner_of(packet.from);
  if (owner == nullptr || packet.late) return;
  if (++packet.tries > most_repeats) return owner->refuse(packet);
  network.pairs_.at(network.now_ + repeats_after, [&network, packet] { arrive(network, packet); });
}

void RemoteEnds::execute(Network& network, RemoteEnds& at, Packet& packet, std::byte* memory) {
  ++network.counters_.accesses;
  RemoteEnds* const owner = network.pairs_.owner_of(packet.from);
  network.counters_.strays += owner == nullptr || owner->find(packet) == nullptr;
  network.trace_.add(network.now_, network.places_[packet.from_place].at, at.settings_.self,
                     packet.bytes, {});
  if (packet.read) {
    packet.data.assign(memory, memory + packet.bytes);
    network.faults.show(at.settings_.self, packet.data);
  } else {
    std::copy_n(packet.data.begin(), packet.bytes, memory);
  }
}

// Lets a pair fail at random: perhaps the peer's end, whose memory is not accessed any longer; or
// the end whose transfer this is, so that the rest of it arrives later; or only the answer is lost.
// Returns true if the transfer is not executed as usual.
bool RemoteEnds::suffers(End& end, Packet& packet, std::byte* memory) {
  const Faults::OfPairs& faults = network_.faults.pairs;
  if (packet.late || faults.failed <= 0 || !network_.prng_.chance(faults.failed)) return false;
  ++network_.counters_.failed_pairs;
  Packet half = packet;
  half.bytes = packet.bytes / 2;
  const uint64_t dice = network_.prng_.below(3);
  if (dice == 0) half.bytes = packet.bytes;
  execute(network_, *this, half, memory);
  if (dice == 1) {
    fail(end);
    repeat(network_, packet);
    return true;
  }
  refuse(packet);
  if (half.bytes == packet.bytes || packet.read) return true;
  Packet rest = packet;
  rest.late = true;
  rest.there.address += half.bytes;
  rest.bytes -= half.bytes;
  rest.data.erase(rest.data.begin(), rest.data.begin() + half.bytes);
  const Duration delay = way() + Duration(static_cast<int64_t>(network_.prng_.below(
                                     static_cast<uint64_t>(faults.late_up_to.count()) + 1)));
  network_.pairs_.at(network_.now_ + delay, [&network = network_, rest] { arrive(network, rest); });
  return true;
}

void RemoteEnds::answer(Packet&& packet) {
  const uint64_t number = packet.from;
  later(number, way(), [packet = std::move(packet)](RemoteEnds& at, End& end) {
    Transfer* const transfer = at.find(packet);
    if (transfer == nullptr || !is_connected(end)) return;
    if (packet.read) {
      if (!at.may_use(*transfer)) return at.fail(end);
      const std::byte* next = packet.data.data();
      for_each_part(*transfer, [&](std::byte* data, uint32_t bytes) {
        std::copy_n(next, bytes, data);
        next += bytes;
      });
    }
    at.finish(*transfer, true);
  });
}

// The end that sent the packet learns that it was refused, or was not answered.
void RemoteEnds::refuse(const Packet& packet) {
  later(packet.from, way(), [](RemoteEnds& at, End& end) { at.fail(end); });
}

}  // namespace urma::drivers::sim
