// SPDX-License-Identifier: Apache-2.0
#include "drivers/accelerator_access.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/above_standard.h"
#include "base/accelerator_memory.h"

namespace urma::drivers {
namespace {

// A description of an end: where the board of its process is, and the line there that the other
// process uses.
struct Place {
  AcceleratorBoard::Name name;
  uint32_t line;
  uint32_t generation;  // of the line
};

RemoteAccess::Description describe(const Place& place) {
  RemoteAccess::Description out{};
  static_assert(sizeof place <= sizeof out);
  std::memcpy(out.data(), &place, sizeof place);
  return out;
}

Place read(const RemoteAccess::Description& description) {
  Place place;
  std::memcpy(&place, description.data(), sizeof place);
  return place;
}

// Copies may be numbered around.
bool is_reached(uint32_t ended, uint32_t number) {
  return static_cast<int32_t>(ended - number) >= 0;
}

// The word of a line in which no copy of this generation has begun.
uint64_t first_of(uint32_t generation) { return uint64_t{generation} << 32; }

CUdeviceptr address_of(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

}  // namespace

AcceleratorAccess::AcceleratorAccess(const std::array<uint64_t, 2>& random)
    : board_(AcceleratorBoard::make(random)) {}

AcceleratorAccess::~AcceleratorAccess() {
  for (End& end : ends_) {
    if (end.state == State::vacant) continue;
    mark(end);
    if (const InCudaContext inside(end.context.get()); inside) {
      inside->cuStreamSynchronize(end.stream);
    }
    release(end);
  }
}

// ---- ends

AcceleratorAccess::End* AcceleratorAccess::find(Handle handle) {
  if (handle.index >= ends_.size()) return nullptr;
  End& end = ends_[handle.index];
  return end.state != State::vacant && end.generation == handle.generation ? &end : nullptr;
}

AcceleratorBoard::Line& AcceleratorAccess::line_of(const End& end) const {
  return (end.passive ? *board_ : *end.other).content().line[end.line];
}

void AcceleratorAccess::tell(const End& end, News::What what, const Description& own) {
  news_.push_back({.end = handle_of(end), .what = what, .own = own});
}

Handle AcceleratorAccess::make(bool opens) {
  const auto vacant = std::ranges::find(ends_, State::vacant, &End::state);
  if (!board_ || vacant == ends_.end()) return {};
  End& end = *vacant;
  end.state = State::made;
  end.passive = opens;
  ++end.generation;
  end.line = static_cast<uint32_t>(&end - ends_.data());
  if (opens) {
    // The last user has ended its copies, and can begin none in this generation.
    AcceleratorBoard::Line& line = line_of(end);
    end.opened = static_cast<uint32_t>(line.begun.load() >> 32);
    line.ended = 0;
    line.begun = first_of(end.opened);
  }
  used_ends_ = std::max(used_ends_, end.line + 1);
  tell(end, News::What::made, describe({board_->name(), end.line, end.opened}));
  return handle_of(end);
}

void AcceleratorAccess::connect(Handle handle, const Description& other, const Eid&) {
  End* const end = find(handle);
  if (end == nullptr || end->state != State::made) return;
  const Place place = read(other);
  const bool found = open_process(*end, place.name) &&
                     (end->passive || open_line(*end, place.line, place.generation));
  if (found) end->state = State::connected;
  tell(*end, found ? News::What::connected : News::What::failed);
}

// That the board opens shows that the number is that of the process at the other end.
bool AcceleratorAccess::open_process(End& end, const AcceleratorBoard::Name& name) {
  const auto process = static_cast<pid_t>(name.process);
  end.process = above_standard(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (end.process < 0) return false;
  end.other = AcceleratorBoard::open(name);
  return end.other.has_value();
}

bool AcceleratorAccess::open_line(End& end, uint32_t line, uint32_t generation) {
  if (line >= AcceleratorBoard::lines) return false;
  end.line = line;
  end.opened = generation;
  return true;
}

void AcceleratorAccess::stop(Handle handle) {
  End* const end = find(handle);
  if (end == nullptr) return;
  if (end->passive && end->state != State::stopping) {
    const uint64_t before = line_of(*end).begun.fetch_add(first_of(1));
    end->closed = static_cast<uint32_t>(before);
  }
  end->state = State::stopping;
}

bool AcceleratorAccess::has_exited(const End& end) {
  pollfd exited{.fd = end.process, .events = POLLIN, .revents = 0};
  return end.process >= 0 && poll(&exited, 1, 0) == 1 && exited.revents != 0;
}

// Returns whether no copy is made over a stopped end. A process that has exited makes none: the
// system closes its GPU's channels before its end can be seen.
bool AcceleratorAccess::is_quiet(const End& end) const {
  if (!end.passive) return end.running.empty();
  const uint32_t ended = line_of(end).ended.load(std::memory_order_acquire);
  return ended == end.closed || has_exited(end);
}

size_t AcceleratorAccess::news(std::span<News> out) {
  for (End& end : used_ends()) {
    if (end.state != State::stopping || !is_quiet(end)) continue;
    tell(end, News::What::stopped);
    release(end);
  }
  const size_t count = std::min(out.size(), news_.size());
  std::ranges::copy(std::span(news_).first(count), out.begin());
  news_.erase(news_.begin(), news_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

void AcceleratorAccess::release(End& end) {
  for (const Mapping& mapping : end.mappings) {
    const InCudaContext inside(mapping.context);
    if (inside) inside->cuIpcCloseMemHandle(mapping.here);
  }
  if (const InCudaContext inside(end.context.get()); inside) {
    inside->cuStreamDestroy(end.stream);
    inside->cuMemHostUnregister(&end.other->content());
  }
  if (end.process >= 0) close(end.process);
  end = {.generation = end.generation};
  while (used_ends_ > 0 && ends_[used_ends_ - 1].state == State::vacant) --used_ends_;
}

// ---- copies

bool AcceleratorAccess::open_stream(End& end, int number) {
  if (end.stream != nullptr) return true;
  CudaContext context(number);
  void* const board = &end.other->content();
  bool ready = false;
  if (const InCudaContext inside(context.get()); inside) {
    constexpr unsigned flags = Cuda::host_register_portable | Cuda::host_register_mapped;
    const bool registered = inside->cuMemHostRegister(board, AcceleratorBoard::bytes, flags) == 0;
    ready = registered &&
            inside->cuMemHostGetDevicePointer(&end.ended, &line_of(end).ended, 0) == 0 &&
            inside->cuStreamCreate(&end.stream, Cuda::stream_non_blocking) == 0;
    if (registered && !ready) inside->cuMemHostUnregister(board);
  }
  if (!ready) return false;
  end.context = std::move(context);
  end.running.reserve(depth);
  return true;
}

// Opens memory of the other process when it is needed first, which takes a moment.
const AcceleratorAccess::Mapping* AcceleratorAccess::mapping_for(End& end, uint32_t key) {
  const auto known = std::ranges::find(end.mappings, key, &Mapping::key);
  if (known != end.mappings.end()) return &*known;
  for (const AcceleratorBoard::Entry& entry : end.other->content().entry) {
    if (entry.key.load(std::memory_order_acquire) != key) continue;
    Mapping made{.key = key, .address = entry.address, .bytes = entry.bytes, .here = entry.address};
    Cuda::IpcHandle handle;
    handle.bytes = entry.handle;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (entry.key.load(std::memory_order_relaxed) != key) return nullptr;
    if (end.other->name().process != static_cast<uint32_t>(getpid())) {
      const InCudaContext inside(end.context.get());
      const bool opened =
          inside && inside->cuIpcOpenMemHandle(&made.here, handle, Cuda::ipc_lazy_peer_access) == 0;
      if (opened) made.context = end.context.get();
      if (!opened) made.bytes = 0;  // it is not tried again
    }
    end.mappings.push_back(made);
    return &end.mappings.back();
  }
  return nullptr;
}

RemoteAccess::Begun AcceleratorAccess::begin(Handle handle, const Task& task) {
  End* const end = find(handle);
  if (end == nullptr || end->state != State::connected || end->passive) return Begun::refused;
  if (end->running.size() == depth) return Begun::full;
  const bool ours = std::ranges::all_of(
      task.pieces, [](const Piece& piece) { return AcceleratorMemory::has(piece.data); });
  if (!ours || !open_stream(*end, AcceleratorMemory::number_of(task.pieces[0].data))) {
    return Begun::refused;
  }
  const Mapping* const mapping = mapping_for(*end, task.there.key);
  const uint64_t at = mapping != nullptr ? task.there.address - mapping->address : 0;
  if (mapping == nullptr || at > mapping->bytes || task.bytes > mapping->bytes - at) {
    return Begun::refused;
  }
  uint64_t latest = first_of(end->opened) | end->copies;
  const uint32_t number = end->copies + 1;
  // Fails once the owner has closed the line.
  if (!line_of(*end).begun.compare_exchange_strong(latest, first_of(end->opened) | number)) {
    return Begun::refused;
  }
  end->copies = number;
  begun_ = true;
  const bool failed = !copy(*end, task, mapping->here + at);
  end->running.push_back({.copy = number, .number = task.number, .failed = failed});
  return Begun::begun;
}

// Returns false if a part of the copy is not made.
bool AcceleratorAccess::copy(const End& end, const Task& task, CUdeviceptr there) {
  const InCudaContext inside(end.context.get());
  if (!inside) return false;
  bool all = true;
  uint64_t skip = task.from;
  uint64_t left = task.bytes;
  for (const Piece& piece : task.pieces) {
    const uint64_t skipped = std::min<uint64_t>(skip, piece.bytes);
    const uint64_t bytes = std::min<uint64_t>(piece.bytes - skipped, left);
    skip -= skipped;
    left -= bytes;
    if (bytes == 0) continue;
    const CUdeviceptr here = address_of(piece.data + skipped);
    const CUdeviceptr to = task.read ? here : there;
    const CUdeviceptr from = task.read ? there : here;
    all = all && inside->cuMemcpyAsync(to, from, bytes, end.stream) == 0;
    there += bytes;
  }
  return all;
}

// Lets the GPU store that the copies so far have ended: once for those that were begun together.
void AcceleratorAccess::mark(End& end) {
  if (end.marked == end.copies) return;
  const InCudaContext inside(end.context.get());
  if (inside && inside->cuMemsetD32Async(end.ended, end.copies, 1, end.stream) == 0) {
    end.marked = end.copies;
  }
}

void AcceleratorAccess::flush() {
  if (!std::exchange(begun_, false)) return;
  for (End& end : used_ends()) mark(end);
}

// Looks now and then whether the copies of this end can still end, and mean something: after an
// error of the GPU nothing runs on its streams any longer, and memory of a process that has
// exited means nothing.
void AcceleratorAccess::question(End& end) {
  if (++end.looks % looks_between_questions != 0) return;
  const InCudaContext inside(end.context.get());
  const bool broken = !inside || Cuda::is_fatal(inside->cuStreamQuery(end.stream));
  if (!broken && !has_exited(end)) return;
  for (Running& one : end.running) one.failed = true;
  if (broken) {
    end.marked = end.copies;
    line_of(end).ended.store(end.copies, std::memory_order_release);
  }
  if (end.state == State::connected) tell(end, News::What::failed);
}

size_t AcceleratorAccess::ended(std::span<Ended> out) {
  size_t count = 0;
  for (End& end : used_ends()) {
    if (end.running.empty()) continue;
    mark(end);
    question(end);
    const uint32_t reached = line_of(end).ended.load(std::memory_order_acquire);
    while (count < out.size() && !end.running.empty() &&
           is_reached(reached, end.running.front().copy)) {
      const Running& one = end.running.front();
      out[count++] = {.number = one.number, .done = !one.failed};
      end.running.erase(end.running.begin());
    }
  }
  return count;
}

// A copy takes microseconds; another process may take long to end one.
std::optional<Duration> AcceleratorAccess::look_again() const {
  if (!news_.empty()) return Duration{};
  std::optional<Duration> out;
  for (const End& end : std::span(ends_).first(used_ends_)) {
    if (!end.running.empty()) return Duration{};
    if (end.state == State::stopping) out = std::chrono::milliseconds(1);
  }
  return out;
}

// ---- memory of this process

// All of an allocation can be opened by other processes, or nothing.
std::optional<RemoteAccess::Opened> AcceleratorAccess::opened(std::span<const std::byte> memory,
                                                              Rights rights, Rights wanted) const {
  const int number = AcceleratorMemory::number_of(memory.data());
  if (!board_ || number < 0 || !has(rights, wanted)) return std::nullopt;
  const CudaContext context(number);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  Cuda::IpcHandle handle{};
  bool shared = false;
  if (const InCudaContext inside(context.get()); inside) {
    const uint64_t first = address_of(memory.data());
    shared = inside->cuMemGetAddressRange(&base, &bytes, first) == 0 && first >= base &&
             memory.size() <= bytes - (first - base) &&
             inside->cuIpcGetMemHandle(&handle, base) == 0;
  }
  if (!shared) return std::nullopt;
  return Opened{.address = address_of(memory.data()),
                .bytes = memory.size(),
                .key = enter(base, bytes, handle.bytes)};
}

// Enters an allocation in the list of the board, unless it is there, and returns its key.
uint32_t AcceleratorAccess::enter(uint64_t address, uint64_t bytes,
                                  const std::array<std::byte, 64>& handle) const {
  auto& entries = board_->content().entry;
  for (const AcceleratorBoard::Entry& entry : entries) {
    if (entry.key != 0 && entry.address == address && entry.handle == handle) return entry.key;
  }
  AcceleratorBoard::Entry& entry = entries[next_entry_++ % entries.size()];
  entry.key.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entry.address = address;
  entry.bytes = bytes;
  entry.handle = handle;
  entry.key.store(next_key_, std::memory_order_release);
  return next_key_++;
}

}  // namespace urma::drivers
