// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/hand_over.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/above_standard.h"

namespace urma::drivers::cxl {
namespace {

constexpr int most_waiting = 128;
// The time for which an answer is awaited, since the owner may be busy, and the interval at which
// the socket is checked without a notification. After a failure the owner is asked again after a
// pause; each pause is twice as long as the one before.
constexpr Duration patience = std::chrono::milliseconds(200);
constexpr Duration between_looks = std::chrono::milliseconds(10);
constexpr Duration first_pause = std::chrono::milliseconds(1);
constexpr Duration longest_pause = std::chrono::seconds(1);
// A device that has connected sends its request within microseconds.
constexpr Duration request_patience = std::chrono::milliseconds(100);

// A byte, and room for just one descriptor: the kernel closes any that do not fit.
struct Message {
  Message() {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = CMSG_LEN(sizeof(int));
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  std::byte byte{1};
  iovec piece{&byte, 1};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};
};

// Sends the descriptor, or none if it is below zero.
bool send_answer(int socket, int descriptor) {
  Message message;
  if (descriptor < 0) message.header.msg_controllen = 0;
  if (descriptor < 0) return sendmsg(socket, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
  cmsghdr* const with = CMSG_FIRSTHDR(&message.header);
  with->cmsg_level = SOL_SOCKET;
  with->cmsg_type = SCM_RIGHTS;
  with->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(with), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

// The result of reading an answer: `nothing` if none has come yet; `given` for a descriptor;
// `refused` if the owner refused; `nonsense` for several descriptors, or something else that is not
// an answer; `no_room` for a descriptor for which this process has no number left; `end` if the
// connection was closed without an answer.
enum class Came : uint8_t { nothing, given, refused, nonsense, no_room, end };

// If the result is `given`, the caller owns `descriptor`.
Came take_answer(int socket, int& descriptor) {
  Message message;
  const ssize_t bytes = recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return Came::nothing;
  if (bytes <= 0) return Came::end;
  const bool cut = (message.header.msg_flags & MSG_CTRUNC) != 0;
  const cmsghdr* const with = CMSG_FIRSTHDR(&message.header);
  const bool one = with != nullptr && with->cmsg_level == SOL_SOCKET &&
                   with->cmsg_type == SCM_RIGHTS && with->cmsg_len == CMSG_LEN(sizeof descriptor);
  if (!one) return cut ? Came::no_room : Came::refused;
  std::memcpy(&descriptor, CMSG_DATA(with), sizeof descriptor);
  if (cut) {
    close(descriptor);
    return Came::nonsense;
  }
  // The kernel chose its number, as open() would have.
  descriptor = above_standard(descriptor);
  return descriptor >= 0 ? Came::given : Came::no_room;
}

// Returns the name under which guesses are counted: of this user one process, so that others are
// not affected; of another user all processes, because that user can start any number.
Eid source_of(int socket) {
  ucred who{};
  socklen_t bytes = sizeof who;
  const bool known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0;
  const std::array<uint32_t, 2> name{
      known ? who.uid : UINT32_MAX,
      known && who.uid == geteuid() ? static_cast<uint32_t>(who.pid) : 0};
  Eid out;
  std::memcpy(out.bytes.data(), name.data(), sizeof name);
  return out;
}

// Changes the file that was opened, and not by its name, which may be another file by now, or a
// link.
bool permit(int at, const struct stat& window) {
  struct stat made {};
  if (fstat(at, &made) != 0) return false;
  if (!S_ISSOCK(made.st_mode) || made.st_uid != geteuid()) {
    errno = EADDRINUSE;
    return false;
  }
  // If the group cannot be set, because it is not one of this process's, its members are not let
  // in.
  const bool group = made.st_gid == window.st_gid ||
                     fchownat(at, "", static_cast<uid_t>(-1), window.st_gid, AT_EMPTY_PATH) == 0;
  const mode_t mode = window.st_mode & (group ? 0666u : 0606u);
  if (mode == (made.st_mode & 0777u)) return true;
  return chmod(("/proc/self/fd/" + std::to_string(at)).c_str(), mode) == 0;
}

// Returns whether no part of the memory can be taken away from a process that maps it: neither its
// end, nor pages in it, which is possible with huge pages.
bool stays_whole(int descriptor) {
  struct statfs kind {};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstatfs(descriptor, &kind) == 0 &&
         kind.f_type == TMPFS_MAGIC;
}

}  // namespace

HandOver::HandOver(uint32_t segments, bool others_entitled)
    : own_(segments), others_entitled_(others_entitled), foreign_(segments) {
  mapped_.reserve(std::min<size_t>(segments, most_mapped));
}

HandOver::~HandOver() {
  forget([](uint32_t, const Name&) { return true; });
  for (const Pending& one : pending_) {
    if (one.socket >= 0) close(one.socket);
  }
  not_inherited_ = NotInherited();
  if (socket_ >= 0) close(socket_);
}

bool HandOver::name_of(const std::string& path, uint32_t slot, sockaddr_un& out) {
  out.sun_family = AF_UNIX;
  constexpr size_t digits = 5;
  if (path.size() + digits >= sizeof out.sun_path) return false;
  char* end = std::copy(path.begin(), path.end(), out.sun_path);
  *end++ = '.';
  end = std::to_chars(end, end + digits, slot).ptr;
  *end = 0;
  return true;
}

void HandOver::remove(const std::string& path, uint32_t slot) {
  sockaddr_un name{};
  struct stat about {};
  const bool there = name_of(path, slot, name) && lstat(name.sun_path, &about) == 0;
  if (there && S_ISSOCK(about.st_mode)) unlink(name.sun_path);
}

// The owner of the slot's lock owns the name: a file there was left by a process that died.
bool HandOver::listen(const std::string& path, uint32_t slot, int window) {
  path_ = path;
  if (!name_of(path, slot, bound_)) {
    errno = ENAMETOOLONG;
    return false;
  }
  remove(path, slot);
  socket_ = above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket_ < 0) return false;
  not_inherited_ = NotInherited(socket_);
  struct stat about {};
  if (fstat(window, &about) == 0 && bind_as(about) && ::listen(socket_, most_waiting) == 0)
    return true;
  const int why = errno;
  not_inherited_ = NotInherited();
  close(std::exchange(socket_, -1));
  errno = why;
  return false;
}

// Users that may open the window may connect. Until the mode is set, permissions are narrower than
// that.
bool HandOver::bind_as(const struct stat& window) {
  const auto* const name = reinterpret_cast<const sockaddr*>(&bound_);
  if (fchmod(socket_, 0600) != 0 || bind(socket_, name, sizeof bound_) != 0) return false;
  const int at = above_standard(::open(bound_.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const bool permitted = at >= 0 && permit(at, window);
  const int why = errno;
  if (at >= 0) close(at);
  if (!permitted && why != EADDRINUSE) unlink(bound_.sun_path);
  errno = why;
  return permitted;
}

void HandOver::stop_listening() {
  if (socket_ < 0) return;
  not_inherited_ = NotInherited();
  close(std::exchange(socket_, -1));
  unlink(bound_.sun_path);
}

// In a directory that all users may write, another user may have taken the name, and would receive
// a token.
bool HandOver::entitled(int socket) const {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return false;
  return others_entitled_ || who.uid == geteuid() || who.uid == 0;
}

// Returns a value below zero if the slot cannot be asked now.
int HandOver::connect_to(uint32_t slot) const {
  sockaddr_un address{};
  if (!name_of(path_, slot, address)) return -1;
  const int to = above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (to < 0) return -1;
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  if (connect(to, at, sizeof address) == 0 && entitled(to)) return to;
  close(to);
  return -1;
}

bool HandOver::ask(const FileRequest& request, const There& there, Time now) {
  Asked& asked = asked_[there.name.slot];
  const Foreign& one = foreign_[there.segment];
  const bool known =
      one.name == there.name && one.said(there.epoch, request.token) != Said::nothing;
  if (asked.socket >= 0 || now < asked.until || known) return false;
  const bool room = mapped_.size() < mapped_.capacity() || one.base != nullptr;
  asked.socket = room ? connect_to(there.name.slot) : -1;
  const bool sent = asked.socket >= 0 && ::send(asked.socket, &request, sizeof request,
                                                MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof request;
  if (!sent) {
    hang_up(asked);
    put_off(asked, now);
    return false;
  }
  asked.token = request.token;
  asked.there = there;
  asked.until = now + patience;
  look_again(now + between_looks);
  return true;
}

void HandOver::hang_up(Asked& asked) {
  if (asked.socket >= 0) close(std::exchange(asked.socket, -1));
  asked.until = {};
}

void HandOver::put_off(Asked& asked, Time now) {
  asked.pause = std::clamp(2 * asked.pause, first_pause, longest_pause);
  asked.until = now + asked.pause;
}

void HandOver::collect(Time now) {
  for (Asked& asked : asked_) {
    if (asked.socket < 0) continue;
    int descriptor = -1;
    const Came came = take_answer(asked.socket, descriptor);
    if (came == Came::nothing && now < asked.until) {
      look_again(std::min(now + between_looks, asked.until));
      continue;
    }
    if (came == Came::nonsense) ++malformed_;
    const bool answered = came == Came::given || came == Came::refused;
    const bool taken = answered && take(asked, descriptor) == Taken::taken;
    if (descriptor >= 0 && came == Came::given) close(descriptor);
    hang_up(asked);
    if (taken) asked.pause = {};
    if (!taken) put_off(asked, now);
  }
}

// A segment that is mapped already stays mapped, because a new grant is for the same file. If this
// process has no room to map the file, this says nothing about the token.
HandOver::Taken HandOver::take(const Asked& asked, int descriptor) {
  Foreign& one = foreign_[asked.there.segment];
  if (!(one.name == asked.there.name)) {
    const auto known = std::ranges::find(mapped_, asked.there.segment);
    if (known != mapped_.end()) unmap(static_cast<size_t>(known - mapped_.begin()));
    one = {};
    one.name = asked.there.name;
  }
  bool good = descriptor >= 0;
  if (good && one.base == nullptr) {
    const Mapped mapped = map(one, asked.there, descriptor);
    if (mapped == Mapped::no_room) return Taken::not_now;
    good = mapped == Mapped::mapped;
  }
  if (one.epoch != asked.there.epoch) one.of_them = {};
  one.epoch = asked.there.epoch;
  const size_t slot = std::exchange(one.second, !one.second) ? 1 : 0;
  one.tokens[slot] = asked.token;
  one.of_them[slot] = good ? Said::good : Said::no;
  return Taken::taken;
}

// Does not trust the owner: truncating a file that is not sealed would kill this process, so seals
// and size are checked by the kernel's answer.
HandOver::Mapped HandOver::map(Foreign& one, const There& there, int descriptor) {
  if (mapped_.size() == mapped_.capacity()) return Mapped::no_room;
  struct stat about {};
  if (!stays_whole(descriptor) || fstat(descriptor, &about) != 0 || about.st_size <= 0) {
    ++malformed_;
    return Mapped::malformed;
  }
  const auto bytes =
      std::min(static_cast<uint64_t>(about.st_size), std::max(there.bytes, uint64_t{1}));
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  one.writable = at != MAP_FAILED;
  if (at == MAP_FAILED) at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return Mapped::no_room;
  one.base = static_cast<std::byte*>(at);
  one.bytes = bytes;
  mapped_.push_back(there.segment);
  return Mapped::mapped;
}

void HandOver::unmap(size_t index) {
  Foreign& one = foreign_[mapped_[index]];
  munmap(one.base, one.bytes);
  one = {};
  mapped_[index] = mapped_.back();
  mapped_.pop_back();
}

void HandOver::answer_request(int socket, const FileRequest& request, Time now) {
  const Eid who = source_of(socket);
  if (judge_ != nullptr && !judge_->admits(who, now)) {
    ++ignored_;
    return;
  }
  using Answer = OwnFiles::Answer;
  int descriptor = -1;
  const Answer answer = own_.answer(request, descriptor);
  if (answer == Answer::nonsense) {
    ++malformed_;
    return;
  }
  if (answer == Answer::bad_token) {
    ++refused_;
    if (judge_ != nullptr)
      judge_->wrong(who, TokenId(request.token_id), TokenValue(request.token), now);
  }
  // A late request is answered, too: then the device can ask for something else immediately.
  send_answer(socket, descriptor);
}

// Returns false if nothing has come yet.
bool HandOver::read_request(int socket, Answered& answered, Time now) {
  FileRequest request{};
  std::array<std::byte, sizeof request + 1> bytes;
  const bool may_ask = entitled(socket);
  const ssize_t count = may_ask ? recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) : 0;
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count == sizeof request) std::memcpy(&request, bytes.data(), sizeof request);
  answer_request(socket, request, now);
  const bool known = request.word == FileRequest::first_word && request.slot < slot_count;
  if (known) answered.slots[answered.count++] = request.slot;
  return true;
}

// Looks again at connections without a request, each of which is closed when it times out.
void HandOver::read_pending(Answered& answered, Time now) {
  for (Pending& one : pending_) {
    if (one.socket < 0) continue;
    const bool arrived = read_request(one.socket, answered, now);
    if (!arrived && now < one.until) {
      look_again(one.until);
      continue;
    }
    if (!arrived) ++malformed_;
    close(std::exchange(one.socket, -1));
  }
}

// Replaces the connection that has been silent for longest.
void HandOver::keep_pending(int socket, Time now) {
  Pending* entry = &pending_[0];
  for (Pending& one : pending_) {
    if (entry->socket >= 0 && (one.socket < 0 || one.until < entry->until)) entry = &one;
  }
  if (entry->socket >= 0) {
    ++malformed_;
    close(entry->socket);
  }
  *entry = {.socket = socket, .until = now + request_patience};
  look_again(entry->until);
}

void HandOver::answer(Answered& answered, Time now) {
  read_pending(answered, now);
  for (size_t i = 0; i < at_once && socket_ >= 0; ++i) {
    const int socket =
        above_standard(accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool none = socket < 0 && errno == EAGAIN;
    if (none) return;
    if (socket < 0) continue;
    read_request(socket, answered, now) ? void(close(socket)) : keep_pending(socket, now);
  }
  // More connections may wait, also because this process has no descriptors at the moment.
  if (socket_ >= 0) look_again(answered.count > 0 ? now : now + between_looks);
}

HandOver::Answered HandOver::look(Time now) {
  Answered answered;
  due_ = never;
  collect(now);
  answer(answered, now);
  return answered;
}

}  // namespace urma::drivers::cxl
