// SPDX-License-Identifier: Apache-2.0
// share=segment: the two ends of the hand-over, and what each does if the other end does not use
// this library, or if a process has run out of something for a moment.

#include "drivers/cxl/hand_over.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "tests/catch.h"
#include "tests/drivers/window_file.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::cxl::FileRequest;
using drivers::cxl::HandOver;

constexpr uint32_t segment = 3;
constexpr uint64_t page = 4096;
constexpr uint32_t token = 6;

size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// While this object exists, this process gets no further descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Sockets beside a window, of an owner at slot 0 and a user at slot 1.
struct Beside {
  Beside() { REQUIRE(user.listen(window.path(), 1, file)); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() {
    user.stop_listening();
    close(file);
  }

  FileRequest request() const {
    return {.word = FileRequest::first_word,
            .segment = segment,
            .file = number,
            .token_id = 5,
            .token = token,
            .slot = 1};
  }
  HandOver::There there() const {
    return {.segment = segment,
            .name = {.slot = 0, .generation = 1, .file = number},
            .epoch = epoch,
            .bytes = record_bytes,
            .checked = true};
  }
  bool ask() { return user.ask(request(), there(), now); }
  std::byte* find(uint64_t offset = 0, uint64_t bytes = 8, bool to_write = true) {
    return user.find(there(), token, to_write, offset, bytes);
  }

  WindowFile window{"beside"};
  int file = ::open(window.path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  HandOver user{16, false};
  uint32_t number = 1;
  uint64_t epoch = 1;
  uint64_t record_bytes = page;
  Time now{1h};
};

// The owner uses this library.
struct Pair : Beside {
  explicit Pair(bool makes = true) {
    REQUIRE(owner.listen(window.path(), 0, file));
    if (!makes) return;
    REQUIRE(owner.own().reserve(segment, page) != nullptr);
    REQUIRE(owner.own().make(segment));
    number = owner.own().grant(segment, {.id = TokenId(5),
                                         .token = TokenValue(token),
                                         .older = TokenValue(token),
                                         .rights = Rights::read | Rights::write});
  }
  ~Pair() { owner.stop_listening(); }

  // Executes works, 1 us apart, until one is a copy; returns false after a second.
  bool becomes_copies() {
    for (const Time until = now + 1s; now < until; now += 1us) {
      if (find() != nullptr) return true;
      told_owner = ask() || told_owner;
      if (std::exchange(told_owner, false) || now >= owner.due()) {
        told_user = owner.look(now).count > 0 || told_user;
      }
      if (std::exchange(told_user, false) || now >= user.due()) user.look(now);
    }
    return false;
  }

  HandOver owner{16, false};
  bool told_owner = false;
  bool told_user = false;
};

// The owner does not use this library.
struct Hostile : Beside {
  Hostile() {
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(bind(owner, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    REQUIRE(listen(owner, 8) == 0);
  }
  ~Hostile() {
    close(owner);
    unlink(path.c_str());
  }

  // Sends this answer, which the user checks.
  void answer(std::span<const int> given) {
    const int one = accept(owner, nullptr, nullptr);
    FileRequest asked{};
    REQUIRE(recv(one, &asked, sizeof asked, 0) == sizeof asked);
    char byte = 1;
    iovec piece{&byte, 1};
    alignas(cmsghdr) std::byte control[256]{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(given.size_bytes());
    cmsghdr* const with = CMSG_FIRSTHDR(&message);
    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(given.size_bytes());
    std::memcpy(CMSG_DATA(with), given.data(), given.size_bytes());
    REQUIRE(sendmsg(one, &message, 0) == 1);
    close(one);
    user.look(now);
  }

  std::string path = window.path() + ".0";
  int owner = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
};

// ---- answers

// Makes a file of this size, with these seals.
int sealed_file(uint64_t bytes, int seals) {
  const int file = memfd_create("another", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(file, static_cast<off_t>(bytes)) == 0);
  REQUIRE(fcntl(file, F_ADD_SEALS, seals) == 0);
  return file;
}

TEST_CASE("hand-over: if an owner answers with many descriptors, the user closes all of them") {
  for (const size_t many : {2, 3, 20}) {
    Hostile hostile;
    const int good = sealed_file(page, F_SEAL_SHRINK);
    const size_t before = descriptors();
    for (int i = 0; i < 20; ++i) {
      hostile.epoch += 2;
      REQUIRE(hostile.ask());
      hostile.answer(std::vector<int>(many, good));
      hostile.now += 1s;
    }
    CHECK(descriptors() == before);
    CHECK(hostile.user.malformed() == 20);
    CHECK(hostile.find() == nullptr);
    close(good);
  }
}

TEST_CASE("hand-over: a file that its owner could truncate is not mapped") {
  Hostile hostile;
  const std::array<int, 4> all{sealed_file(page, F_SEAL_GROW), hostile.file,
                               sealed_file(0, F_SEAL_SHRINK | F_SEAL_GROW), hostile.owner};
  for (const int one : all) {
    hostile.epoch += 2;
    REQUIRE(hostile.ask());
    hostile.answer({&one, 1});
    CHECK(hostile.find() == nullptr);
    // This is not a shortage, so the user does not ask again.
    CHECK_FALSE(hostile.user.ask(hostile.request(), hostile.there(), hostile.now + 1h));
  }
  CHECK(hostile.user.malformed() == all.size());
  close(all[0]);
  close(all[2]);
}

TEST_CASE("hand-over: a file is used up to its real size, whatever its record says") {
  Hostile hostile;
  hostile.record_bytes = 16 * page;
  const int file = sealed_file(2 * page, F_SEAL_SHRINK);
  REQUIRE(hostile.ask());
  hostile.answer({&file, 1});
  REQUIRE(hostile.find() != nullptr);
  CHECK(hostile.find(0, 2 * page) == hostile.find());
  CHECK(hostile.find(2 * page, 0) == hostile.find() + 2 * page);
  CHECK(hostile.find(0, 2 * page + 1) == nullptr);
  CHECK(hostile.find(1, 2 * page) == nullptr);
  CHECK(hostile.find(2 * page, 1) == nullptr);
  CHECK(hostile.find(2 * page + 1, 0) == nullptr);
  CHECK(hostile.find(UINT64_MAX, 2) == nullptr);
  CHECK(hostile.find(2, UINT64_MAX) == nullptr);
  close(file);
}

TEST_CASE("hand-over: of a file that is longer than its segment, only the segment is mapped") {
  Hostile hostile;
  hostile.record_bytes = 100;
  const int file = sealed_file(uint64_t{1} << 46, F_SEAL_SHRINK);
  REQUIRE(hostile.ask());
  hostile.answer({&file, 1});
  CHECK(hostile.find(0, 100) != nullptr);
  CHECK(hostile.find(0, 101) == nullptr);
  close(file);
}

TEST_CASE("hand-over: a file that may not be written is mapped for reading only") {
  Hostile hostile;
  constexpr int future_writes = 0x0010;
  const int file = sealed_file(page, F_SEAL_SHRINK | future_writes);
  REQUIRE(hostile.ask());
  hostile.answer({&file, 1});
  CHECK(hostile.find(0, 8, false) != nullptr);
  CHECK(hostile.find(0, 8, true) == nullptr);
  close(file);
}

TEST_CASE("hand-over: a mapping is found by its token and epoch, and not by others") {
  Pair pair;
  REQUIRE(pair.becomes_copies());
  HandOver::There there = pair.there();
  CHECK(pair.user.find(there, token ^ 1, false, 0, 8) == nullptr);
  there.checked = false;
  CHECK(pair.user.find(there, token ^ 1, false, 0, 8) != nullptr);
  there.checked = true;
  there.epoch += 2;
  CHECK(pair.user.find(there, token, false, 0, 8) == nullptr);
  there = pair.there();
  ++there.name.generation;
  CHECK(pair.user.find(there, token, false, 0, 8) == nullptr);
}

TEST_CASE("hand-over: a peer that is not entitled gets no descriptor") {
  Pair pair;
  const bool root = geteuid() == 0;
  const pid_t child = root ? fork() : -1;
  if (child == 0) {
    if (chmod((pair.window.path() + ".0").c_str(), 0666) != 0 || setuid(65534) != 0) _exit(1);
    const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = pair.window.path() + ".0";
    std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
    if (connect(to, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) _exit(2);
    const FileRequest request = pair.request();
    if (send(to, &request, sizeof request, 0) != sizeof request) _exit(3);
    for (;;) pause();
  }
  if (child < 0) return;
  for (int i = 0; i < 2000 && pair.owner.malformed() == 0; ++i) {
    usleep(1000);
    CHECK(pair.owner.look(pair.now).count == 0);
  }
  kill(child, SIGKILL);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(pair.owner.malformed() == 1);
  CHECK_FALSE(pair.owner.own().handed_over(segment));
}

TEST_CASE(
    "hand-over: an ignored peer gets no answer, and wrong tokens are reported to the TokenJudge") {
  struct Judge final : drivers::TokenJudge {
    bool admits(const Eid& who, Time) override {
      CHECK((asked == 0 || who == last));
      last = who;
      ++asked;
      return hearing;
    }
    void wrong(const Eid& who, TokenId id, TokenValue value, Time) override {
      CHECK(who == last);
      CHECK(id == TokenId(5));
      CHECK(value == TokenValue(9));
      ++judged;
    }
    bool hearing = true;
    int asked = 0;
    int judged = 0;
    Eid last;
  };
  Judge judge;
  Pair pair;
  pair.owner.set_judge(&judge);
  FileRequest wrong = pair.request();
  wrong.token = 9;
  REQUIRE(pair.user.ask(wrong, pair.there(), pair.now));
  pair.owner.look(pair.now);
  pair.user.look(pair.now);
  CHECK(judge.judged == 1);
  CHECK(pair.owner.refused() == 1);
  judge.hearing = false;
  REQUIRE(pair.ask());
  pair.owner.look(pair.now);
  pair.user.look(pair.now);
  CHECK(pair.find() == nullptr);
  CHECK(pair.owner.ignored() == 1);
  CHECK(judge.asked == 2);
  judge.hearing = true;
  CHECK(pair.becomes_copies());
  CHECK(judge.judged == 1);
}

TEST_CASE("hand-over: all users that ask together are answered, although the owner is woken once") {
  Pair pair;
  std::vector<int> all;
  for (int i = 0; i < 50; ++i) {
    all.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = pair.window.path() + ".0";
    std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(connect(all.back(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    const FileRequest request = pair.request();
    REQUIRE(send(all.back(), &request, sizeof request, 0) == sizeof request);
  }
  size_t answered = 0;
  for (int looks = 0; looks == 0 || pair.owner.due() <= pair.now; ++looks) {
    REQUIRE(looks < 20);
    answered += pair.owner.look(pair.now).count;
  }
  CHECK(answered == all.size());
  for (const int one : all) {
    char byte = 0;
    CHECK(recv(one, &byte, 1, MSG_DONTWAIT) == 1);
    close(one);
  }
}

// ---- a shortage that passes

TEST_CASE("hand-over: an owner that had no descriptor for a moment answers afterwards") {
  Pair pair;
  REQUIRE(pair.ask());
  {
    const NoDescriptors none;
    CHECK(pair.owner.look(pair.now).count == 0);
  }
  // The owner is not notified again.
  CHECK(pair.becomes_copies());
  CHECK(pair.owner.malformed() == 0);
}

TEST_CASE("hand-over: a user without an answer asks again, at growing intervals") {
  Pair pair(false);
  Time last{};
  Duration before{};
  for (int i = 0; i < 15; ++i) {
    const Time limit = pair.now + 2s;
    while (!pair.ask() && pair.now < limit) {
      pair.now += 1ms;
      if (pair.now >= pair.user.due()) pair.user.look(pair.now);
    }
    REQUIRE(pair.now < limit);
    if (i > 1) CHECK(pair.now - last >= before);
    if (i > 0) before = pair.now - last;
    last = pair.now;
  }
  CHECK(before >= 1s);
}

TEST_CASE("hand-over: a user that has no descriptor left for an answer asks again") {
  Pair pair;
  REQUIRE(pair.ask());
  REQUIRE(pair.owner.look(pair.now).count == 1);
  {
    const NoDescriptors none;
    pair.user.look(pair.now);
  }
  CHECK(pair.find() == nullptr);
  CHECK(pair.becomes_copies());
  CHECK(pair.user.malformed() == 0);
}

TEST_CASE("hand-over: a user that has no descriptor to ask with asks later") {
  Pair pair;
  {
    const NoDescriptors none;
    CHECK_FALSE(pair.ask());
  }
  CHECK(pair.becomes_copies());
}

TEST_CASE("hand-over: an answer is found without a notification") {
  Pair pair;
  REQUIRE(pair.ask());
  REQUIRE(pair.owner.look(pair.now).count == 1);
  CHECK(pair.user.due() <= pair.now + 10ms);
  CHECK(pair.becomes_copies());
}

// Another user has notified the owner while this one was between connect and send.
TEST_CASE("hand-over: a user that has connected and not sent yet is served when it sends") {
  Pair pair;
  const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = pair.window.path() + ".0";
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  REQUIRE(connect(to, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  CHECK(pair.owner.look(pair.now).count == 0);
  pair.now += 50ms;
  const FileRequest request = pair.request();
  REQUIRE(send(to, &request, sizeof request, 0) == sizeof request);
  CHECK(pair.owner.look(pair.now).count == 1);
  char byte = 0;
  CHECK(recv(to, &byte, 1, 0) == 1);
  CHECK(pair.owner.malformed() == 0);
  close(to);
}

TEST_CASE("hand-over: the owner does not wait for a silent user, which delays no other user") {
  Pair pair;
  const size_t before = descriptors();
  std::vector<int> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = pair.window.path() + ".0";
    std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(connect(silent.back(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  }
  CHECK(pair.becomes_copies());
  for (int i = 0; i < 40; ++i) pair.owner.look(pair.now += 100ms);
  for (const int one : silent) close(one);
  CHECK(descriptors() == before);
  CHECK(pair.owner.malformed() == 40);
}

}  // namespace
}  // namespace urma::test
