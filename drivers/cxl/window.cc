#include "drivers/cxl/window.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "urma/base/bell.h"
#include "urma/base/clock.h"
#include "urma/base/entropy.h"

namespace urma::drivers::cxl {
namespace {

constexpr uint64_t default_bytes = 1 << 30;
constexpr uint64_t most_bytes = uint64_t{1} << 46;
constexpr uint32_t most_not_let_go = 4;
constexpr Duration lock_patience = std::chrono::seconds(1);
// Bytes of the file, far behind what is mapped, that locks are taken on.
constexpr off_t window_lock = off_t{1} << 60;
constexpr off_t place_locks = window_lock + 1;

Error because(Status status, const std::string& path, std::string_view why, std::string_view fix) {
  return {status,
          "cxl: the window " + path + " " + std::string(why) + ". Fix: " + std::string(fix)};
}

std::string system_says(int why) { return std::strerror(why); }

// False, and errno, when it is somebody else's.
bool set_lock(int descriptor, off_t at, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = 1;
  return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

// A number for this start of this kernel: locks are its own.
uint64_t this_boot() {
  std::array<char, 64> text{};
  const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
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

}  // namespace

// The window's lock, for as long as it lives.
class Window::Lock {
 public:
  explicit Lock(int descriptor) : descriptor_(descriptor) {
    held_ = set_lock(descriptor, window_lock, F_WRLCK);
    why_not_ = held_ ? 0 : errno;
  }
  // Waits for it; whoever has it is quick, unless it was stopped there.
  Lock(int descriptor, Duration patience) : Lock(descriptor) {
    for (const Time until = read_clock() + patience;
         !held_ && somebody_has_it() && read_clock() < until;) {
      constexpr timespec while_it_works{0, 200'000};
      ppoll(nullptr, 0, &while_it_works, nullptr);
      held_ = set_lock(descriptor, window_lock, F_WRLCK);
    }
  }
  Lock(const Lock&) = delete;
  ~Lock() {
    if (held_) set_lock(descriptor_, window_lock, F_UNLCK);
  }
  bool held() const { return held_; }
  // False: there are no such locks here.
  bool somebody_has_it() const { return why_not_ == EAGAIN || why_not_ == EACCES; }
  int why_not() const { return why_not_; }

 private:
  int descriptor_;
  bool held_;
  int why_not_;
};

Window::Window(Window&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      not_inherited_(std::move(other.not_inherited_)),
      owner_(other.owner_),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      id_(other.id_),
      rings_(other.rings_),
      own_(std::exchange(other.own_, nobody)),
      is_file_(other.is_file_),
      guard_(std::move(other.guard_)),
      changes_(other.changes_),
      places_(other.places_),
      records_(other.records_) {}

Window::~Window() {
  guard_ = Guard();
  if (base_ != nullptr) munmap(base_, bytes_);
  not_inherited_ = NotInherited();
  if (descriptor_ >= 0) close(descriptor_);
}

// ---- opening

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
    descriptor = ::open(path_.c_str(), flags);
    if (descriptor < 0 && errno != ENOENT) break;
    if (descriptor < 0) descriptor = ::open(path_.c_str(), flags | O_CREAT | O_EXCL, 0600);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor >= 0) return descriptor;
  const int why = errno;
  if (why == EACCES || why == EPERM) {
    return because(Status::permission_denied, path_, "cannot be opened: " + system_says(why),
                   "it belongs to another user: choose another path, cxl:/dev/shm/NAME, or have "
                   "its owner allow it (chmod a+rw)");
  }
  return because(Status::io_error, path_, "cannot be opened: " + system_says(why),
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
  struct statfs system {};
  if (fstat(descriptor_, &about) != 0 || fstatfs(descriptor_, &system) != 0) {
    return because(Status::io_error, path_, "cannot be looked at: " + system_says(errno),
                   "choose another path");
  }
  if (settings.path.empty() && about.st_uid != geteuid()) {
    return because(Status::permission_denied, path_, "belongs to another user",
                   "remove it, or choose a path of your own: cxl:/dev/shm/NAME");
  }
  if (!S_ISREG(about.st_mode) && !S_ISCHR(about.st_mode)) {
    return because(Status::invalid_argument, path_, "is neither a file nor a device",
                   "name a file in /dev/shm, a /dev/dax device, or a PCI BAR's resource file");
  }
  is_file_ = S_ISREG(about.st_mode);
  const Lock lock(descriptor_, lock_patience);
  if (!lock.held()) return cannot_lock(lock);
  // What it was before it was ours to see.
  if (is_file_ && fstat(descriptor_, &about) != 0) about.st_size = 0;
  const auto file_bytes = static_cast<uint64_t>(about.st_size);
  uint64_t bytes = settings.bytes != 0 ? settings.bytes : file_bytes;
  if (bytes == 0 && is_file_) bytes = default_bytes;
  if (bytes == 0) {
    return because(Status::invalid_argument, path_, "is a device that does not say how large it is",
                   "say it: cxl:" + path_ + "?size=1G");
  }
  if (file_bytes != 0 && bytes != file_bytes) {
    return because(Status::invalid_argument, path_,
                   "is there and has " + size_text(file_bytes) + ", not " + size_text(bytes),
                   "leave size out, or remove the file when nobody uses it");
  }
  // hugetlbfs has files of whole pages only.
  const auto page = static_cast<uint64_t>(system.f_bsize);
  if (file_bytes == 0 && is_file_ && page > page_bytes) bytes = (bytes + page - 1) / page * page;
  if (bytes < least_window_bytes || bytes > most_bytes) {
    return because(Status::invalid_argument, path_,
                   "has " + std::to_string(bytes) + " bytes: it was cut off, or is something else",
                   "a window has 1M at least: choose another path, or remove the file when nobody "
                   "uses it; it is made anew");
  }
  const bool fresh = file_bytes == 0 && is_file_;
  if (fresh && ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    return because(Status::no_resources, path_,
                   "cannot have " + size_text(bytes) + ": " + system_says(errno),
                   "a smaller size, cxl:PATH?size=1M, or a file system with more room (df)");
  }
  bytes_ = bytes;
  rings_ = rings_in(bytes);
  const bool all_of_it = settings.bytes != 0;
  if (!fresh) return found(all_of_it);
  if (auto made = make(all_of_it); !made) {
    // Whoever comes next begins with nothing, as we did.
    if (ftruncate(descriptor_, 0) != 0) return made.error();
    return made.error();
  }
  return {};
}

// Now, so that no memory left is an error here and no fault later. What has none to take (a device)
// or cannot take it in advance is left alone: writing there might undo what others write.
int Window::take_memory(uint64_t at, uint64_t bytes) const {
  if (!is_file_) return 0;
  int result = -1;
  do {
    result = fallocate(descriptor_, 0, static_cast<off_t>(at), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV ? 0 : errno;
}

// By another opening than the one that has our locks: a mapping keeps its own alive, also in a
// child of fork that outlives us.
Error Window::cannot_lock(const Lock& lock) const {
  if (lock.somebody_has_it()) {
    return because(Status::io_error, path_,
                   "is locked by a process that does not go on (stopped while it joined?)",
                   "continue or end that process (see /proc/locks), or use another window");
  }
  return because(Status::unsupported, path_, "cannot be locked: " + system_says(lock.why_not()),
                 "put it on a file system that has locks (/dev/shm has)");
}

Result<void> Window::map() {
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
    return because(Status::io_error, path_, "was replaced while it was opened", "try again");
  }
  if (at == MAP_FAILED) {
    return because(Status::io_error, path_,
                   "cannot be mapped (" + size_text(bytes_) + "): " + system_says(why),
                   "name a file in /dev/shm or hugetlbfs (with free huge pages), a /dev/dax device "
                   "or a prefetchable BAR; a size that is what the device has");
  }
  base_ = static_cast<std::byte*>(at);
  if (is_file_) guard_ = Guard(base_, bytes_);
  changes_ = reinterpret_cast<Changes*>(base_ + line_bytes);
  places_ = reinterpret_cast<Place*>(base_ + places_at);
  records_ = reinterpret_cast<RingRecord*>(base_ + records_at);
  return {};
}

// A window that nobody has begun, or not finished. With the lock.
Result<void> Window::make(bool all_of_it) {
  const uint64_t taken = all_of_it ? bytes_ : rings_at(rings_);
  if (const int why = take_memory(0, taken); why != 0) {
    return because(Status::no_resources, path_,
                   "cannot have " + std::to_string(taken) + " bytes of memory: " + system_says(why),
                   "a smaller size, cxl:PATH?size=1M, or a file system with more room (df)");
  }
  if (base_ == nullptr) {
    if (auto mapped = map(); !mapped) return mapped.error();
  }
  auto& header = *reinterpret_cast<Header*>(base_);
  std::memset(base_ + line_bytes, 0, rings_at(rings_) - line_bytes);
  header.version = version;
  header.rings = rings_;
  header.bytes = bytes_;
  id_ = header.id = SecureEntropy().next();
  header.boot = this_boot();
  header.magic.store(magic, std::memory_order_release);
  return {};
}

// With the lock.
Result<void> Window::found(bool all_of_it) {
  // A page that has no memory yet needs some even to be read.
  if (const int why = take_memory(0, rings_at(rings_)); why != 0) {
    return because(Status::no_resources, path_,
                   "has no memory left in its file system: " + system_says(why),
                   "free some there (df)");
  }
  if (auto mapped = map(); !mapped) return mapped.error();
  auto& header = *reinterpret_cast<Header*>(base_);
  const uint64_t has = header.magic.load(std::memory_order_acquire);
  if (has == 0) {
    // Begun by somebody who died: nobody else is at it, for we have the lock. Or never begun.
    static constexpr std::byte zeros[line_bytes]{};
    if (std::memcmp(&header, zeros, sizeof zeros) == 0 || header.version == version) {
      return make(all_of_it);
    }
  }
  const std::string_view anew = "remove it when nobody uses it; it is made anew";
  if (has != magic) {
    return because(Status::invalid_argument, path_, "is something else: it does not begin as one",
                   "choose another path, or remove it if you need it no more");
  }
  if (header.version != version || header.rings != rings_in(header.bytes)) {
    if (deserted()) return make(all_of_it);
  }
  if (header.version != version) {
    return because(Status::version_mismatch, path_,
                   "has layout " + std::to_string(header.version) + ", and this library speaks " +
                       std::to_string(version),
                   "use one version of liburma on this window, or remove it when nobody uses it");
  }
  if (header.bytes != bytes_ || header.rings != rings_) {
    return because(Status::invalid_argument, path_,
                   "was made with " + std::to_string(header.bytes) + " bytes and " +
                       std::to_string(header.rings) + " rings, and has " + std::to_string(bytes_) +
                       " and " + std::to_string(rings_) + " now: it was cut off, or written over",
                   anew);
  }
  if (header.boot != this_boot()) {
    return because(
        Status::unsupported, path_,
        "was used by another kernel, whose processes this one cannot see, or by this "
        "one before it was started anew",
        "if no other machine has it open, remove the file, or write zeros over the first "
        "page of the device");
  }
  if (const int why = all_of_it ? take_memory(0, bytes_) : 0; why != 0) {
    return because(Status::no_resources, path_,
                   "cannot have all of its " + size_text(bytes_) + ": " + system_says(why),
                   "a smaller window, or a file system with more room (df)");
  }
  id_ = header.id;
  release_dead();
  return {};
}

// ---- places

// Whether its owner lives. The kernel does not tell us of our own locks.
bool Window::held(uint32_t place) const {
  if (place == own_) return true;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place_locks + static_cast<off_t>(place);
  lock.l_len = 1;
  return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool Window::here() const { return owner_ == getpid(); }

// Whether nobody lives there, whatever the layout: all of them lock places from here on.
bool Window::deserted() const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place_locks;
  return fcntl(descriptor_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void Window::changed() { changes_->count.fetch_add(1, std::memory_order_release); }

// With the lock.
void Window::end_place(uint32_t place) {
  std::atomic<uint32_t>& generation = places_[place].record.generation;
  generation.store(generation.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  changed();
  tell_partners(place);
}

// Those who share a ring with somebody who has gone: until they let go of it, nobody else gets it.
void Window::tell_partners(uint32_t place) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t ended = generation(place) - 1;
  for (uint32_t ring = 0; ring < rings_; ++ring) {
    const Ownership owner = ownership(ring);
    const bool sent = owner.from == place && owner.from_generation == ended;
    const bool received = owner.to == place && owner.to_generation == ended;
    const uint32_t partner = sent ? owner.to : owner.from;
    if ((!sent && !received) || partner >= places) continue;
    Bell(places_[partner].bell.word).ring();
  }
}

void Window::release_dead() {
  for (uint32_t place = 0; place < places; ++place) {
    if (generation(place) % 2 == 1 && !held(place)) end_place(place);
  }
}

Result<uint32_t> Window::join() {
  const Lock lock(descriptor_, lock_patience);
  if (!lock.held()) return cannot_lock(lock);
  release_dead();
  for (uint32_t place = 0; place < places; ++place) {
    if (generation(place) % 2 == 1) continue;
    // Generations may have been written over; the lock is what counts.
    if (!set_lock(descriptor_, place_locks + static_cast<off_t>(place), F_WRLCK)) continue;
    places_[place].bell.word.store(0, std::memory_order_relaxed);
    std::atomic<uint32_t>& generation = places_[place].record.generation;
    generation.store(generation.load(std::memory_order_relaxed) | 1, std::memory_order_release);
    changed();
    own_ = place;
    return place;
  }
  return because(Status::no_resources, path_,
                 "has no free place: " + std::to_string(places) + " devices are open on it",
                 "close some, or use another window: cxl:/dev/shm/NAME");
}

void Window::leave(uint32_t place) {
  const Lock lock(descriptor_, lock_patience);
  // If the lock cannot be had, the next one who comes finds us gone.
  if (lock.held()) end_place(place);
  own_ = nobody;
  set_lock(descriptor_, place_locks + static_cast<off_t>(place), F_UNLCK);
  if (!lock.held() || !is_file_) return;
  release_dead();
  if (lost()) return;
  for (uint32_t other = 0; other < places; ++other) {
    if (generation(other) % 2 == 1) return;
  }
  // The last one switches off the light: the rings' memory goes back to the system.
  const uint64_t from = rings_at(rings_);
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
            static_cast<off_t>(bytes_ - from));
}

bool Window::inhabited(uint32_t place) {
  if (generation(place) % 2 == 0) return false;
  if (held(place)) return true;
  const Lock lock(descriptor_);
  if (lock.held() && generation(place) % 2 == 1 && !held(place)) end_place(place);
  return false;
}

// ---- rings

// Nobody's while it changes: whoever changes it says so when it is done.
Window::Ownership Window::ownership(uint32_t ring) const {
  const RingRecord& record = records_[ring];
  Ownership out{};
  out.serial = record.serial.load(std::memory_order_acquire);
  out.from = record.from.load(std::memory_order_relaxed);
  out.to = record.to.load(std::memory_order_relaxed);
  out.from_generation = record.from_generation.load(std::memory_order_relaxed);
  out.to_generation = record.to_generation.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint32_t again = record.serial.load(std::memory_order_relaxed);
  if ((out.serial & changing) != 0 || again != out.serial) out.serial = 0;
  return out;
}

Ring& Window::ring_at(uint32_t ring) const {
  return *reinterpret_cast<Ring*>(base_ + rings_at(rings_) + uint64_t{ring} * ring_bytes);
}

// With the lock: whether nobody will touch it any more. Who is gone does not; its memory may be
// gone as well, so it is looked at last.
bool Window::free_again(uint32_t ring) const {
  const Ownership owner = ownership(ring);
  if (owner.serial == 0 || owner.from >= places || owner.to >= places) return true;
  const bool sender_gone = generation(owner.from) != owner.from_generation;
  const bool receiver_gone = generation(owner.to) != owner.to_generation;
  if (sender_gone && receiver_gone) return true;
  const RingControl& control = ring_at(ring).control;
  if (!sender_gone && control.sender.let_go.load(std::memory_order_acquire) != owner.serial) {
    return false;
  }
  return receiver_gone || control.receiver.let_go.load(std::memory_order_acquire) == owner.serial;
}

std::optional<uint32_t> Window::free_ring(uint32_t after) const {
  for (uint32_t ring = after; ring < rings_; ++ring) {
    if (free_again(ring)) return ring;
  }
  return std::nullopt;
}

bool Window::take_ring_memory(uint32_t ring) const {
  return take_memory(rings_at(rings_) + uint64_t{ring} * ring_bytes, ring_bytes) == 0;
}

void Window::give(uint32_t ring, uint32_t from, uint32_t to) {
  RingRecord& record = records_[ring];
  Ring& memory = ring_at(ring);
  const uint32_t before = record.serial.load(std::memory_order_relaxed) & ~changing;
  const uint32_t serial = (before + 1) & ~changing;
  record.serial.store(before | changing, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  memory.control.receiver.taken.store(0, std::memory_order_relaxed);
  memory.control.receiver.let_go.store(0, std::memory_order_relaxed);
  memory.control.sender.let_go.store(0, std::memory_order_relaxed);
  memory.lines[0].mark.store(nothing_yet, std::memory_order_relaxed);
  record.from.store(from, std::memory_order_relaxed);
  record.to.store(to, std::memory_order_relaxed);
  record.from_generation.store(generation(from), std::memory_order_relaxed);
  record.to_generation.store(generation(to), std::memory_order_relaxed);
  record.serial.store(serial == 0 ? 1 : serial, std::memory_order_release);
}

Window::Claim Window::claim_pair(uint32_t from, uint32_t to) {
  const Lock lock(descriptor_);
  if (!lock.held()) return Claim::not_now;
  if (to >= places || generation(to) % 2 == 0) return Claim::nobody_there;
  if (!held(to)) {
    end_place(to);
    return Claim::nobody_there;
  }
  uint32_t not_let_go = 0;
  for (uint32_t ring = 0; ring < rings_; ++ring) {
    const Ownership owner = ownership(ring);
    if (owner.serial == 0 || owner.from != from || owner.to != to) continue;
    const bool current =
        owner.from_generation == generation(from) && owner.to_generation == generation(to);
    // Perhaps the other one was quicker.
    if (current) return Claim::made;
    // A partner that does not let go of what the dead had here does not get more and more.
    if (!free_again(ring) && ++not_let_go > most_not_let_go) return Claim::not_now;
  }
  const std::optional<uint32_t> there = free_ring(0);
  const std::optional<uint32_t> back = there && from != to ? free_ring(*there + 1) : there;
  if (!back) {
    // Perhaps the dead have some; those who shared them are told, and let go in a moment.
    release_dead();
    return Claim::no_room;
  }
  if (!take_ring_memory(*there) || !take_ring_memory(*back)) return Claim::no_room;
  if (from != to) give(*back, to, from);
  give(*there, from, to);
  changed();
  return Claim::made;
}

}  // namespace urma::drivers::cxl
