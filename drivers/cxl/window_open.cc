// How a window is opened: which file, how large, made or found, and what is wrong with it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/above_standard.h"
#include "base/entropy.h"
#include "base/file_limit.h"
#include "base/file_system.h"
#include "drivers/cxl/acted_caches.h"
#include "drivers/cxl/window.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {
namespace {

constexpr uint64_t default_bytes = 1 << 30;
constexpr uint64_t most_bytes = uint64_t{1} << 46;

std::string system_says(int why) { return std::strerror(why); }

// A number for this start of this kernel: locks are its own.
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

std::string size_text(uint64_t bytes) {
  return bytes % (1 << 20) == 0 ? std::to_string(bytes >> 20) + "M" : std::to_string(bytes);
}

Header& header_of(std::byte* base) { return *reinterpret_cast<Header*>(base); }

}  // namespace

// What a header says, each word of it read once.
struct Window::Says {
  uint64_t magic;
  uint32_t version;
  uint32_t rings;
  uint64_t bytes;
  uint64_t id;
  uint64_t boot;
  bool coherent;
  bool blank;
};

Window::Says Window::read(const Header& header) {
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

// Begun by somebody who died: nobody else is at it, for we have the lock. Or never begun. What else
// begins with zeros is not ours to write over.
bool Window::unfinished(const Says& says) {
  return says.magic == 0 && (says.blank || says.version == version);
}

Result<Window> Window::open(const WindowSettings& settings) {
  Window window;
  window.path_ =
      settings.path.empty() ? "/dev/shm/urma-" + std::to_string(geteuid()) : settings.path;
  if (auto done = window.open_file(settings); !done) return done.error();
  return window;
}

// An existing one is opened without O_CREAT, which the system may refuse in a directory for all,
// such as /dev/shm, when the file is another user's (fs.protected_regular).
Result<int> Window::open_path() const {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  int descriptor = -1;
  for (int tries = 0; tries < 3 && descriptor < 0; ++tries) {
    descriptor = above_standard(::open(path_.c_str(), flags));
    if (descriptor < 0 && errno != ENOENT) break;
    if (descriptor < 0) {
      descriptor = above_standard(::open(path_.c_str(), flags | O_CREAT | O_EXCL, 0600));
    }
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor >= 0) return descriptor;
  const int why = errno;
  if (why == EACCES || why == EPERM) {
    return because(Status::permission_denied, "cannot be opened: " + system_says(why),
                   "it belongs to another user: choose another path, cxl:/dev/shm/NAME, or have "
                   "its owner allow it (chmod a+rw)");
  }
  if (is_shortage(why)) return no_room("cannot be made", page_bytes, why);
  return because(Status::io_error, "cannot be opened: " + system_says(why),
                 "name a file in /dev/shm or hugetlbfs, a /dev/dax device, or a PCI BAR's "
                 "resource file");
}

Result<void> Window::open_file(const WindowSettings& settings) {
  const Result<int> opened = open_path();
  if (!opened) return opened.error();
  descriptor_ = *opened;
  owner_ = getpid();
  not_inherited_ = NotInherited(descriptor_);
  struct stat about {};
  if (fstat(descriptor_, &about) != 0) {
    return because(Status::io_error, "cannot be looked at: " + system_says(errno),
                   "choose another path");
  }
  if (settings.path.empty() && about.st_uid != geteuid()) {
    return because(Status::permission_denied, "belongs to another user",
                   "remove it, or choose a path of your own: cxl:/dev/shm/NAME");
  }
  if (!S_ISREG(about.st_mode) && !S_ISCHR(about.st_mode)) {
    return because(Status::invalid_argument, "is neither a file nor a device",
                   "name a file in /dev/shm, a /dev/dax device, or a PCI BAR's resource file");
  }
  is_file_ = S_ISREG(about.st_mode);
  const WindowLock lock(descriptor_, WindowLock::patience);
  if (!lock.held()) return cannot_lock(lock);
  // What it was before it was ours to see.
  if (is_file_ && fstat(descriptor_, &about) != 0) about.st_size = 0;
  const auto file_bytes = static_cast<uint64_t>(about.st_size);
  pages_ = pages_of(descriptor_);
  const Result<uint64_t> size = choose_size(settings, file_bytes);
  if (!size) return size.error();
  const bool fresh = file_bytes == 0 && is_file_;
  if (fresh && !file_may_have(*size)) {
    return because(Status::no_resources,
                   "cannot have " + size_text(*size) + ": larger than this process's files may be",
                   "a smaller size, cxl:PATH?size=1M, or a higher limit (ulimit -f)");
  }
  if (fresh && ftruncate(descriptor_, static_cast<off_t>(*size)) != 0) {
    return cannot_have("cannot have " + size_text(*size), *size, errno);
  }
  bytes_ = *size;
  parts_ = Parts::of(bytes_);
  moved_ = std::make_unique<std::atomic<bool>[]>(parts_.granules);
  if (settings.hands_over) {
    hand_over_ = std::make_unique<HandOver>(parts_.granules, (about.st_mode & 0022) != 0);
  }
  if (!fresh) return found(settings);
  if (auto made = make(settings); !made) {
    // Whoever comes next begins with nothing, as we did.
    [[maybe_unused]] const int emptied = ftruncate(descriptor_, 0);
    return made.error();
  }
  return {};
}

// What is asked for, what is there, or the default; of whole pages, also for whoever asks for it
// with the same words as its maker.
Result<uint64_t> Window::choose_size(const WindowSettings& settings, uint64_t file_bytes) const {
  uint64_t bytes = settings.bytes != 0 ? settings.bytes : file_bytes;
  if (bytes == 0 && is_file_) bytes = default_bytes;
  if (is_file_ && bytes != file_bytes && bytes <= most_bytes) {
    bytes = (bytes + pages_.bytes - 1) / pages_.bytes * pages_.bytes;
  }
  if (bytes == 0) {
    return because(Status::invalid_argument, "is a device that does not say how large it is",
                   "say it: cxl:" + path_ + "?size=1G");
  }
  if (file_bytes != 0 && bytes != file_bytes) {
    return because(Status::invalid_argument,
                   "is there and has " + size_text(file_bytes) + ", not " + size_text(bytes),
                   "leave size out, or remove the file when nobody uses it");
  }
  if (bytes < least_window_bytes || bytes > most_bytes) {
    return because(Status::invalid_argument,
                   "has " + std::to_string(bytes) + " bytes: it was cut off, or is something else",
                   "a window has 1M at least: choose another path, or remove the file when nobody "
                   "uses it; it is made anew");
  }
  return bytes;
}

// By another opening than the one that has our locks: a mapping keeps its own alive, also in a
// child of fork that outlives us.
Result<void> Window::map(const WindowSettings& settings) {
  const Result<int> again = open_path();
  if (!again) return again.error();
  struct stat ours {};
  struct stat theirs {};
  const bool same = fstat(descriptor_, &ours) == 0 && fstat(*again, &theirs) == 0 &&
                    ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
  void* const at =
      same ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *again, 0)
           : MAP_FAILED;
  const int why = errno;
  close(*again);
  if (!same) {
    return because(Status::io_error, "was replaced while it was opened", "try again");
  }
  if (at == MAP_FAILED && why == ENOMEM) {
    return because(Status::no_resources,
                   "cannot be mapped (" + size_text(bytes_) + "): " + system_says(why),
                   "more address space (ulimit -v) or a smaller window; in hugetlbfs, free huge "
                   "pages");
  }
  if (at == MAP_FAILED) {
    return because(Status::io_error,
                   "cannot be mapped (" + size_text(bytes_) + "): " + system_says(why),
                   "name a file in /dev/shm or hugetlbfs (with free huge pages), a /dev/dax device "
                   "or a prefetchable BAR; a size that is what the device has");
  }
  mapped_ = static_cast<std::byte*>(at);
  if (pages_.asked) madvise(mapped_, bytes_, MADV_HUGEPAGE);
  if (is_file_) guard_ = Guard(mapped_, bytes_);
  work_on(mapped_);
  return settings.coherent.value_or(true) ? Result<void>()
                                          : put_caches_between(settings.double_seed);
}

Result<void> Window::put_caches_between(uint64_t double_seed) {
  if (double_seed != 0) {
    auto acted = ActedCaches::make(mapped_, bytes_, double_seed);
    if (acted == nullptr) {
      return because(Status::no_resources, "cannot have a copy of its own: " + system_says(errno),
                     "a smaller window: cxl:PATH?size=16M");
    }
    work_on(acted->copy());
    caches_ = std::move(acted);
    return {};
  }
  caches_ = processor_caches();
  if (caches_ != nullptr) return {};
  return because(Status::unsupported,
                 "is not coherent, and this processor is none whose caches we can write back",
                 "x86-64 or aarch64, or a window that is coherent");
}

void Window::work_on(std::byte* base) {
  base_ = base;
  changes_ = reinterpret_cast<Changes*>(base_ + line_bytes);
  places_ = reinterpret_cast<Place*>(base_ + places_at);
  records_ = reinterpret_cast<RingRecord*>(base_ + records_at);
  segments_ = reinterpret_cast<SegmentRecord*>(base_ + parts_.segments_at);
}

// A window that nobody has begun, or not finished, or that nobody of another layout lives in. With
// the lock. Until all of it is there it has no magic.
Result<void> Window::make(const WindowSettings& settings) {
  const uint64_t taken = settings.bytes != 0 ? bytes_ : parts_.rings_at;
  if (const int why = take_memory(0, taken); why != 0) {
    return cannot_have(settings.bytes != 0 ? "cannot have all of its " + size_text(bytes_)
                                           : "cannot have the memory that it begins with",
                       taken, why);
  }
  if (base_ == nullptr) {
    if (auto mapped = map(settings); !mapped) return mapped.error();
  }
  Header& header = header_of(base_);
  if (caches_ != nullptr) caches_->refresh(base_, parts_.rings_at);
  tell(header.magic, uint64_t{0});
  std::memset(base_ + line_bytes, 0, parts_.rings_at - line_bytes);
  header.version.store(version, std::memory_order_relaxed);
  header.rings.store(parts_.rings, std::memory_order_relaxed);
  header.bytes.store(bytes_, std::memory_order_relaxed);
  header.boot.store(this_boot(), std::memory_order_relaxed);
  header.coherent.store(coherent() ? 1 : 0, std::memory_order_relaxed);
  id_ = SecureEntropy().next();
  header.id.store(id_, std::memory_order_relaxed);
  if (caches_ != nullptr) caches_->write_back(base_, parts_.rings_at);
  tell(header.magic, magic);
  return {};
}

Error Window::cannot_have(std::string_view what, uint64_t needed_bytes, int why) const {
  if (is_shortage(why)) return no_room(what, needed_bytes, why);
  return because(Status::io_error, std::string(what) + ": " + system_says(why),
                 "choose a file on another file system: cxl:/another/path");
}

// With the lock.
Result<void> Window::found(const WindowSettings& settings) {
  // A page that has no memory yet needs some even to be read.
  if (const int why = take_memory(0, parts_.rings_at); why != 0) {
    return cannot_have("cannot have the memory that it begins with", parts_.rings_at, why);
  }
  if (auto mapped = map(settings); !mapped) return mapped.error();
  if (caches_ != nullptr) caches_->refresh(base_, sizeof(Header));
  Says says = read(header_of(base_));
  const bool of_another_layout =
      says.magic == magic && (says.version != version || says.rings != Parts::of(says.bytes).rings);
  if (unfinished(says) || (of_another_layout && !any_place_is_locked(descriptor_))) {
    return make(settings);
  }
  if (says.magic == magic && !says.coherent && coherent()) {
    if (auto done = put_caches_between(0); !done) return done.error();
    caches_->refresh(base_, sizeof(Header));
    says = read(header_of(base_));
  }
  if (auto fine = examine(says, settings); !fine) return fine.error();
  if (const int why = settings.bytes != 0 ? take_memory(0, bytes_) : 0; why != 0) {
    return cannot_have("cannot have all of its " + size_text(bytes_), bytes_, why);
  }
  id_ = says.id;
  release_dead();
  return {};
}

Result<void> Window::examine(const Says& says, const WindowSettings& settings) const {
  if (says.magic != magic) {
    return because(Status::invalid_argument, "is something else: it does not begin as one",
                   "choose another path, or remove it if you need it no more");
  }
  if (says.version != version) {
    return because(Status::version_mismatch,
                   "has layout " + std::to_string(says.version) + ", and this library speaks " +
                       std::to_string(version),
                   "use one version of liburma on this window, or remove it when nobody uses it");
  }
  if (says.bytes != bytes_ || says.rings != parts_.rings) {
    return because(Status::invalid_argument,
                   "was made with " + std::to_string(says.bytes) + " bytes and " +
                       std::to_string(says.rings) + " rings, and has " + std::to_string(bytes_) +
                       " and " + std::to_string(parts_.rings) +
                       " now: it was cut off, or written over",
                   "remove it when nobody uses it; it is made anew");
  }
  if (settings.coherent.value_or(says.coherent) != says.coherent) {
    return because(Status::invalid_argument,
                   says.coherent ? "was made as coherent" : "was made as not coherent",
                   "leave coherent= out, choose another path, or remove it when nobody uses it");
  }
  if (says.boot != this_boot()) {
    return because(Status::unsupported,
                   "was used by another kernel, whose processes this one cannot see, or by this "
                   "one before it was started anew",
                   "if no other machine has it open, remove the file, or write zeros over the "
                   "first page of the device");
  }
  return {};
}

}  // namespace urma::drivers::cxl
