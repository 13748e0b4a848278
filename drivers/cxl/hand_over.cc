#include "drivers/cxl/hand_over.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace urma::drivers::cxl {
namespace {

constexpr int most_waiting = 128;
constexpr uint32_t pause_after_nobody = 1000;  // works
constexpr uint32_t most_bad_a_second = 16;
constexpr Duration first_deaf = std::chrono::milliseconds(100);
constexpr Duration most_deaf = std::chrono::seconds(10);

// A byte, and one descriptor at most.
struct Message {
  Message() {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  std::byte byte{1};
  iovec piece{&byte, 1};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};
};

// Below zero: none.
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

enum class Came : uint8_t { nothing, answer, end };

// An answer has a descriptor, or -1. More than fit the kernel closes.
Came take_answer(int socket, int& descriptor) {
  Message message;
  descriptor = -1;
  const ssize_t bytes = recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return Came::nothing;
  if (bytes <= 0) return Came::end;
  const cmsghdr* const with = CMSG_FIRSTHDR(&message.header);
  const bool one = with != nullptr && with->cmsg_level == SOL_SOCKET &&
                   with->cmsg_type == SCM_RIGHTS && with->cmsg_len == CMSG_LEN(sizeof descriptor);
  if (one) std::memcpy(&descriptor, CMSG_DATA(with), sizeof descriptor);
  return Came::answer;
}

}  // namespace

HandOver::HandOver(uint32_t segments, bool others_entitled)
    : own_(segments), others_entitled_(others_entitled), foreign_(segments) {
  mapped_.reserve(std::min<size_t>(segments, most_mapped));
}

HandOver::~HandOver() {
  forget([](uint32_t, const Name&) { return true; });
  not_inherited_ = NotInherited();
  if (socket_ >= 0) close(socket_);
}

bool HandOver::name_of(const std::string& path, uint32_t place, sockaddr_un& out) {
  out.sun_family = AF_UNIX;
  constexpr size_t digits = 5;
  if (path.size() + digits >= sizeof out.sun_path) return false;
  char* end = std::copy(path.begin(), path.end(), out.sun_path);
  *end++ = '.';
  end = std::to_chars(end, end + digits, place).ptr;
  *end = 0;
  return true;
}

void HandOver::remove(const std::string& path, uint32_t place) {
  sockaddr_un name{};
  struct stat about {};
  const bool there = name_of(path, place, name) && lstat(name.sun_path, &about) == 0;
  if (there && S_ISSOCK(about.st_mode)) unlink(name.sun_path);
}

// Who has the place's lock has its name: what lies there is of somebody who died.
bool HandOver::listen(const std::string& path, uint32_t place, int window) {
  path_ = path;
  if (!name_of(path, place, bound_)) {
    errno = ENAMETOOLONG;
    return false;
  }
  remove(path, place);
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return false;
  not_inherited_ = NotInherited(socket_);
  struct stat about {};
  if (fstat(window, &about) != 0) return false;
  // Who may open the window may ask. Before anybody can: its mode is narrow when it is made.
  const bool bound = fchmod(socket_, 0600) == 0 &&
                     bind(socket_, reinterpret_cast<const sockaddr*>(&bound_), sizeof bound_) == 0;
  if (!bound) return false;
  // Of a group that is not ours nothing is given away: then its members are not let in.
  const bool group = about.st_gid == getegid() ||
                     lchown(bound_.sun_path, static_cast<uid_t>(-1), about.st_gid) == 0;
  const mode_t mode = about.st_mode & (group ? 0666u : 0606u);
  return chmod(bound_.sun_path, mode) == 0 && ::listen(socket_, most_waiting) == 0;
}

void HandOver::stop_listening() {
  if (socket_ < 0) return;
  not_inherited_ = NotInherited();
  close(std::exchange(socket_, -1));
  unlink(bound_.sun_path);
}

// A name in a directory for all may be taken by somebody else, who would be shown a token.
bool HandOver::entitled(int socket) const {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return false;
  return others_entitled_ || who.uid == geteuid() || who.uid == 0;
}

bool HandOver::ask(const FileRequest& request, const There& there) {
  Asked& asked = asked_[there.name.place];
  if (asked.in_vain > 0) {
    --asked.in_vain;
    return false;
  }
  const Foreign& one = foreign_[there.segment];
  const bool known =
      one.name == there.name && one.said(there.epoch, request.token) != Said::nothing;
  if (asked.socket >= 0 || known) return false;
  sockaddr_un address{};
  asked.in_vain = pause_after_nobody;
  if (!name_of(path_, there.name.place, address)) return false;
  const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool sent = to >= 0 &&
                    connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    entitled(to) &&
                    ::send(to, &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                        static_cast<ssize_t>(sizeof request);
  if (!sent) {
    if (to >= 0) close(to);
    return false;
  }
  asked = {.socket = to, .token = request.token, .there = there};
  return true;
}

void HandOver::end(Asked& asked) {
  close(asked.socket);
  asked = {};
}

void HandOver::collect() {
  for (Asked& asked : asked_) {
    int descriptor = -1;
    const Came came = asked.socket < 0 ? Came::nothing : take_answer(asked.socket, descriptor);
    if (came == Came::nothing) continue;
    if (came == Came::answer) take(asked, descriptor);
    if (descriptor >= 0) close(descriptor);
    end(asked);
    if (came == Came::end) asked.in_vain = pause_after_nobody;
  }
}

// What is mapped of it stays where it is: a new grant is of the same file.
void HandOver::take(const Asked& asked, int descriptor) {
  Foreign& one = foreign_[asked.there.segment];
  if (!(one.name == asked.there.name)) {
    const auto known = std::ranges::find(mapped_, asked.there.segment);
    if (known != mapped_.end()) unmap(static_cast<size_t>(known - mapped_.begin()));
    one = {};
    one.name = asked.there.name;
  }
  if (one.epoch != asked.there.epoch) one.of_them = {};
  one.epoch = asked.there.epoch;
  const bool good =
      descriptor >= 0 && (one.base != nullptr || map(one, asked.there.segment, descriptor));
  const size_t slot = std::exchange(one.second, !one.second) ? 1 : 0;
  one.tokens[slot] = asked.token;
  one.of_them[slot] = good ? Said::good : Said::no;
}

// Whatever its owner says: what he could cut off would end us, and its size is the kernel's word.
bool HandOver::map(Foreign& one, uint32_t segment, int descriptor) {
  if (mapped_.size() == mapped_.capacity()) return false;
  struct stat about {};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!sealed || fstat(descriptor, &about) != 0 || about.st_size <= 0) {
    ++malformed_;
    return false;
  }
  const auto bytes = static_cast<uint64_t>(about.st_size);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  one.writable = at != MAP_FAILED;
  if (at == MAP_FAILED) at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return false;
  one.base = static_cast<std::byte*>(at);
  one.bytes = bytes;
  mapped_.push_back(segment);
  return true;
}

void HandOver::unmap(size_t index) {
  Foreign& one = foreign_[mapped_[index]];
  munmap(one.base, one.bytes);
  one = {};
  mapped_[index] = mapped_.back();
  mapped_.pop_back();
}

// Not by source: a process has as many as it likes. What others lose meanwhile is speed.
void HandOver::count_bad_token(Time now) {
  ++refused_;
  if (now - second_began_ > std::chrono::seconds(1)) {
    if (now - deaf_until_ > 2 * most_deaf) deaf_for_ = {};
    second_began_ = now;
    bad_ = 0;
  }
  if (++bad_ <= most_bad_a_second && deaf_for_ == Duration{}) return;
  deaf_for_ = deaf_for_ == Duration{} ? first_deaf : std::min(2 * deaf_for_, most_deaf);
  deaf_until_ = now + deaf_for_;
}

void HandOver::answer_request(int socket, const FileRequest& request, Time now) {
  if (now < deaf_until_) {
    ++unheard_;
    return;
  }
  using Answer = OwnFiles::Answer;
  int descriptor = -1;
  const Answer answer = own_.answer(request, descriptor);
  if (answer == Answer::nonsense) ++malformed_;
  if (answer == Answer::bad_token) count_bad_token(now);
  if (answer == Answer::granted || answer == Answer::bad_token) send_answer(socket, descriptor);
}

bool HandOver::answer_one(int socket, uint32_t& place, Time now) {
  FileRequest request{};
  std::array<std::byte, sizeof request + 1> bytes;
  const ssize_t count =
      entitled(socket) ? recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) : 0;
  if (count == sizeof request) std::memcpy(&request, bytes.data(), sizeof request);
  place = request.place;
  answer_request(socket, request, now);
  return request.word == FileRequest::first_word && place < places;
}

size_t HandOver::answer(std::array<uint32_t, at_once>& told, Time now) {
  size_t count = 0;
  while (count < at_once) {
    const int socket = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) break;
    told[count] = places;
    uint32_t place = places;
    if (answer_one(socket, place, now)) told[count] = place;
    ++count;
    close(socket);
  }
  return count;
}

}  // namespace urma::drivers::cxl
