// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/opener.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/above_standard.h"
#include "base/entropy.h"
#include "base/file_limit.h"
#include "base/file_system.h"
#include "drivers/cxl/window_lock.h"
#include "urma/core/setting.h"

namespace urma::drivers::cxl {
namespace {

constexpr uint64_t default_bytes = 1 << 30;
constexpr uint64_t most_bytes = uint64_t{1} << 46;

// Returns a number for this boot of this kernel, because locks are the kernel's own.
uint64_t this_boot() {
  std::array<char, 64> text{};
  const int file = above_standard(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (file < 0) return 0;
  const ssize_t bytes = ::read(file, text.data(), text.size());
  close(file);
  uint64_t mixed = 0;
  for (ssize_t i = 0; i < bytes; ++i)
    mixed = mixed * 31 + static_cast<uint8_t>(text[static_cast<size_t>(i)]);
  return mixed;
}

}  // namespace

// The contents of a header, each word of it read once.
struct Opener::Says {
  uint64_t magic;
  uint32_t version;
  uint32_t rings;
  uint64_t bytes;
  uint64_t id;
  uint64_t boot;
  bool coherent;
  bool blank;
};

Opener::Says Opener::read(const Header& header) {
  static constexpr std::byte zeros[sizeof(Header)]{};
  return {.magic = header.magic.load(std::memory_order_acquire),
          .version = header.version.load(std::memory_order_relaxed),
          .rings = header.rings.load(std::memory_order_relaxed),
          .bytes = header.bytes.load(std::memory_order_relaxed),
          .id = header.id.load(std::memory_order_relaxed),
          .boot = header.boot.load(std::memory_order_relaxed),
          .coherent = header.coherent.load(std::memory_order_relaxed) != 0,
          .blank = std::memcmp(static_cast<const void*>(&header), zeros, sizeof zeros) == 0};
}

// Returns whether the process that was making the window died before it was finished, or none has
// begun: no other process is making it, because this one has the lock. Another program's file that
// begins with zeros is not changed.
bool Opener::unfinished(const Says& says) {
  return says.magic == 0 && (says.blank || says.version == version);
}

Opener::Opener(const WindowSettings& settings)
    : settings_(settings),
      errors_{settings.path.empty() ? "/dev/shm/urma-" + std::to_string(geteuid())
                                    : settings.path} {}

Result<std::unique_ptr<Mapping>> Opener::open() {
  mapping_ = std::make_unique<Mapping>(errors_.path);
  if (auto opened = mapping_->file().open(); !opened) return opened.error();
  if (auto done = prepare_file(); !done) return done.error();
  const WindowLock lock(file().descriptor(), WindowLock::patience);
  if (!lock.held()) return errors_.cannot_lock(lock);
  if (auto done = size_file(); !done) return done.error();
  if (!fresh_) {
    if (auto found = find(); !found) return found.error();
  } else if (auto made = make(); !made) {
    // The next process that opens the file begins with an empty file, as this one did.
    [[maybe_unused]] const int emptied = ftruncate(file().descriptor(), 0);
    return made.error();
  }
  return std::move(mapping_);
}

Result<void> Opener::prepare_file() {
  struct stat about {};
  if (fstat(file().descriptor(), &about) != 0) {
    return errors_.failed(Status::io_error, "cannot be examined: ", std::strerror(errno))
        .fix("choose another path");
  }
  if (settings_.path.empty() && about.st_uid != geteuid()) {
    return errors_.failed(Status::permission_denied, "belongs to another user")
        .fix("remove it, or choose a path of your own: cxl:/dev/shm/NAME");
  }
  if (!S_ISREG(about.st_mode) && !S_ISCHR(about.st_mode)) {
    return errors_.failed(Status::invalid_argument, "is neither a file nor a device")
        .fix("name a file in /dev/shm, a /dev/dax device, or a PCI BAR's resource file");
  }
  others_entitled_ = (about.st_mode & 0022) != 0;
  return {};
}

// The caller holds the lock, because before that another process may be making the file.
Result<void> Opener::size_file() {
  struct stat about {};
  if (fstat(file().descriptor(), &about) != 0) about.st_size = 0;
  const auto file_bytes = static_cast<uint64_t>(about.st_size);
  const Result<uint64_t> size = choose_size(file_bytes);
  if (!size) return size.error();
  bytes_ = *size;
  fresh_ = file_bytes == 0 && file().is_file();
  if (!fresh_) return {};
  if (!file_may_have(bytes_)) {
    return errors_
        .failed(Status::no_resources, "cannot have ", size_text(bytes_),
                ": this process may not make a file of this size")
        .fix("choose a smaller size, cxl:PATH?size=1M, or a higher limit (ulimit -f)");
  }
  if (ftruncate(file().descriptor(), static_cast<off_t>(bytes_)) != 0) {
    return errors_.cannot_have("cannot have " + size_text(bytes_), bytes_, errno);
  }
  return {};
}

// Returns the requested size, the size of the file, or the default, rounded to whole pages. A
// process that requests the same size as the window's maker thus gets the same result.
Result<uint64_t> Opener::choose_size(uint64_t file_bytes) const {
  const bool is_file = file().is_file();
  uint64_t bytes = settings_.bytes != 0 ? settings_.bytes : file_bytes;
  if (bytes == 0 && is_file) bytes = default_bytes;
  if (is_file && bytes != file_bytes && bytes <= most_bytes) {
    const uint64_t page = file().pages().bytes;
    bytes = (bytes + page - 1) / page * page;
  }
  if (bytes == 0) {
    return errors_.failed(Status::invalid_argument, "is a device that does not report its size")
        .fix("give the size: cxl:", errors_.path, "?size=1G");
  }
  if (file_bytes != 0 && bytes != file_bytes) {
    return errors_
        .failed(Status::invalid_argument, "exists and has ", size_text(file_bytes), ", not ",
                size_text(bytes))
        .fix("leave size out, or remove the file when no process uses it");
  }
  if (bytes < least_window_bytes || bytes > most_bytes) {
    return errors_
        .failed(Status::invalid_argument, "has ", bytes,
                " bytes: it was truncated, or is not a window")
        .fix(
            "a window has at least 1M: choose another path, or remove the file when no process "
            "uses it; the next device makes a new one");
  }
  return bytes;
}

// Takes the first `bytes` of the file's memory. Returns an errno, or 0. Does nothing if the file
// has all its memory, because to take 1 GiB again takes almost as long as the first time, and the
// lock is held meanwhile. (A disk's file system counts blocks of its own, too. Rings and segments
// take their memory again before they are used.)
int Opener::take_memory(uint64_t bytes) const {
  return allocated_bytes(file().descriptor()) >= bytes_ ? 0 : file().take_memory(0, bytes);
}

Result<void> Opener::map() {
  mapped_ = true;
  return mapping_->map(bytes_, settings_.coherent.value_or(true), settings_.double_seed);
}

// Makes the window in a file that is empty or unfinished, or has an older layout that no device
// uses. The caller holds the lock. The magic is written last.
Result<void> Opener::make() {
  const Parts parts = Parts::of(bytes_);
  const uint64_t taken = settings_.bytes != 0 ? bytes_ : parts.rings_at;
  if (const int why = take_memory(taken); why != 0) {
    return errors_.cannot_have(settings_.bytes != 0 ? "cannot have all of its " + size_text(bytes_)
                                                    : "cannot have the memory of its first pages",
                               taken, why);
  }
  if (!mapped_) {
    if (auto mapped = map(); !mapped) return mapped.error();
  }
  const SharedWords& words = mapping_->words();
  std::byte* const base = words.base();
  Header& header = words.header();
  words.refresh(base, parts.rings_at);
  words.store(header.magic, uint64_t{0});
  std::memset(base + line_bytes, 0, parts.rings_at - line_bytes);
  header.version.store(version, std::memory_order_relaxed);
  header.rings.store(parts.rings, std::memory_order_relaxed);
  header.bytes.store(bytes_, std::memory_order_relaxed);
  header.boot.store(this_boot(), std::memory_order_relaxed);
  header.coherent.store(words.coherent() ? 1 : 0, std::memory_order_relaxed);
  mapping_->set_id(SecureEntropy().next());
  header.id.store(mapping_->id(), std::memory_order_relaxed);
  words.write_back(base, parts.rings_at);
  words.store(header.magic, magic);
  return {};
}

// Maps the file, and examines the window in it, or makes one there. The caller holds the lock.
Result<void> Opener::find() {
  // A page for which no memory was taken yet needs some even to be read.
  const uint64_t begins_with = Parts::of(bytes_).rings_at;
  if (const int why = take_memory(begins_with); why != 0) {
    return errors_.cannot_have("cannot have the memory of its first pages", begins_with, why);
  }
  if (auto mapped = map(); !mapped) return mapped.error();
  const SharedWords& words = mapping_->words();
  const auto read_header = [&] {
    words.refresh(&words.header(), sizeof(Header));
    return read(words.header());
  };
  Says says = read_header();
  const bool of_another_layout =
      says.magic == magic && (says.version != version || says.rings != Parts::of(says.bytes).rings);
  if (unfinished(says) || (of_another_layout && !any_slot_is_locked(file().descriptor()))) {
    return make();
  }
  if (says.magic == magic && !says.coherent && words.coherent()) {
    if (auto done = mapping_->put_caches_between(0); !done) return done.error();
    says = read_header();
  }
  if (auto fine = examine(says); !fine) return fine.error();
  if (const int why = settings_.bytes != 0 ? take_memory(bytes_) : 0; why != 0) {
    return errors_.cannot_have("cannot have all of its " + size_text(bytes_), bytes_, why);
  }
  mapping_->set_id(says.id);
  return {};
}

Result<void> Opener::examine(const Says& says) const {
  const Parts parts = Parts::of(bytes_);
  if (says.magic != magic) {
    return errors_
        .failed(Status::invalid_argument,
                "is not a window: it does not begin with the header of one")
        .fix("choose another path, or remove the file if you do not need it any more");
  }
  if (says.version != version) {
    return errors_
        .failed(Status::version_mismatch, "has layout ", says.version, ", and this library has ",
                version)
        .fix(
            "use one version of liburma on this window, or remove its file when no process uses "
            "it");
  }
  if (says.bytes != bytes_ || says.rings != parts.rings) {
    return errors_
        .failed(Status::invalid_argument, "was made with ", says.bytes, " bytes and ", says.rings,
                " rings, and now has ", bytes_, " and ", parts.rings,
                ": it was truncated or overwritten")
        .fix("remove its file when no process uses it; the next device makes a new one");
  }
  if (settings_.coherent.value_or(says.coherent) != says.coherent) {
    return errors_
        .failed(Status::invalid_argument,
                says.coherent ? "was made as coherent" : "was made as not coherent")
        .fix(
            "leave coherent= out, choose another path, or remove the file when no process uses "
            "it");
  }
  if (says.boot != this_boot()) {
    return errors_
        .failed(Status::unsupported,
                "was used by another kernel, whose processes this one cannot see, or by this one "
                "before it was restarted")
        .fix(
            "if no other machine has it open, remove the file, or write zeros over the first "
            "page of the device");
  }
  return {};
}

}  // namespace urma::drivers::cxl
