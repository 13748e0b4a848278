// SPDX-License-Identifier: Apache-2.0
// One process plays NCCL: every call of every version, in the usual order and in wrong ones.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/nccl/net.h"
#include "tests/umdk/check.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

std::string plugin;                    // the file
constexpr const char* patience = "4";  // a busy machine stops processes for seconds

// A communicator of NCCL with one connection to itself, and memory for both directions.
struct Rank {
  explicit Rank(const Net& from, size_t bytes = 1 << 20) : net(from), out(bytes), in(bytes) {
    REQUIRE(net.init(&context) == Code::success);
    pair = make_pair(net, context);
    REQUIRE(net.add(pair.sender, out.data(), out.size(), &out_memory) == Code::success);
    REQUIRE(net.add(pair.receiver, in.data(), in.size(), &in_memory) == Code::success);
  }
  Rank(const Rank&) = delete;
  ~Rank() {
    CHECK(net.remove(pair.sender, out_memory) == Code::success);
    CHECK(net.remove(pair.receiver, in_memory) == Code::success);
    close_pair(net, pair);
    CHECK(net.finalize(context) == Code::success);
  }

  void* receive(size_t bytes, int tag = 1, size_t at = 0) {
    return test::receive(net, pair.receiver, in.data() + at, bytes, tag, in_memory);
  }
  void* send(size_t bytes, int tag = 1, size_t at = 0) {
    return test::send(net, pair.sender, out.data() + at, bytes, tag, out_memory);
  }
  void transfer(size_t bytes, size_t room, unsigned number) {
    fill(out, number);
    void* const receiving = receive(room);
    void* const sending = send(bytes);
    const Ended sent = finish(net, sending);
    const Ended arrived = finish(net, receiving);
    CHECK(sent.done && sent.bytes[0] == static_cast<int>(bytes));
    CHECK(arrived.done && arrived.bytes[0] == static_cast<int>(bytes));
    CHECK(is_filled(in.data(), bytes, number));
  }

  const Net& net;
  void* context = nullptr;
  std::vector<std::byte> out, in;
  Pair pair;
  void* out_memory = nullptr;
  void* in_memory = nullptr;
};

// Returns whether there was a warning, and each has a cure.
bool warned() {
  const auto lines = Net::warnings();
  for (const auto& line : lines) CHECK(line.find(" Fix: ") != line.npos);
  return !lines.empty();
}

void shows_its_properties(const Net& net) {
  void* context = nullptr;
  CHECK(net.name() == "URMA");
  REQUIRE(net.init(&context) == Code::success);
  CHECK(net.devices() == 1);
  const NetProperties shown = net.properties();
  CHECK(shown.is_virtual && shown.global);
  CHECK(shown.pointers == nccl::host_pointers);
  CHECK(shown.most_receives == 8 && shown.most_comms > 0 && shown.speed_mbps > 0);
  CHECK(net.finalize(context) == Code::success);
  CHECK(net.finalize(nullptr) == Code::success);
  CHECK(!net.exports("_ZN4urma9configurationEv"));
}

void carries_all_sizes(const Net& net) {
  Rank rank(net, (4 << 20) + 3);
  unsigned number = 0;
  constexpr size_t sizes[] = {0, 1, 8, 63, 4096, 65536, 65537, 512 << 10, (4 << 20) + 3};
  for (const size_t bytes : sizes) {
    rank.transfer(bytes, bytes, ++number);
    rank.transfer(bytes / 2, bytes, ++number);
  }
  void* request = &rank;
  CHECK(net.iflush(rank.pair.receiver, rank.in.data(), 8, rank.in_memory, &request) ==
        Code::success);
  CHECK(request == nullptr);
}

// LL and LL128: NCCL sets the request to 1, and gets a request that completes all the same.
void takes_optional_completion(const Net& net) {
  Rank rank(net);
  for (int i = 0; i < 100; ++i) {
    void* request = reinterpret_cast<void*>(nccl::optional_completion);
    REQUIRE(net.irecv(rank.pair.receiver, rank.in.data(), 8, 1, rank.in_memory, &request) ==
            Code::success);
    REQUIRE(request != nullptr && request != reinterpret_cast<void*>(nccl::optional_completion));
    void* const sending = rank.send(8);
    CHECK(finish(net, request).done);
    CHECK(finish(net, sending).done);
  }
}

void waits_for_the_receive(const Net& net) {
  Rank rank(net);
  void* request = &rank;
  REQUIRE(net.isend(rank.pair.sender, rank.out.data(), 8, 1, rank.out_memory, &request) ==
          Code::success);
  CHECK(request == nullptr);
  void* const receiving = rank.receive(8, 2);
  for (int i = 0; i < 1000; ++i) {
    // A receive with another tag is not the one.
    CHECK(net.isend(rank.pair.sender, rank.out.data(), 8, 1, rank.out_memory, &request) ==
          Code::success);
    CHECK(request == nullptr);
  }
  int done = 1;
  CHECK(net.test(receiving, &done, nullptr) == Code::success && done == 0);
  void* const sending = rank.send(8, 2);
  CHECK(finish(net, sending).done && finish(net, receiving).done);
}

// Two receives of 8 buffers each; sends in the opposite order of tags, and of mixed sizes.
void fills_grouped_receives(const Net& net) {
  constexpr size_t room = 100'000;
  Rank rank(net, 16 * room);
  fill(rank.out, 3);
  std::memset(rank.in.data(), 255, rank.in.size());
  std::array<void*, 2> receiving{};
  for (size_t group = 0; group < 2; ++group) {
    std::vector<void*> data, memories;
    std::vector<int> tags;
    for (size_t i = 0; i < 8; ++i) {
      data.push_back(rank.in.data() + (group * 8 + i) * room);
      memories.push_back(rank.in_memory);
      tags.push_back(static_cast<int>(i / 2));  // each tag twice
    }
    REQUIRE(net.irecv(rank.pair.receiver, data, std::vector<size_t>(8, room), tags, memories,
                      &receiving[group]) == Code::success);
  }
  const auto size_of = [](size_t group, size_t i) { return (group * 8 + i) * 6000; };
  std::vector<void*> sending;
  for (size_t tag = 4; tag-- > 0;) {
    for (size_t each = 0; each < 4; ++each) {
      const size_t group = each / 2, i = tag * 2 + each % 2;
      sending.push_back(
          rank.send(size_of(group, i), static_cast<int>(tag), (group * 8 + i) * room));
    }
  }
  for (void* const one : sending) CHECK(finish(net, one).done);
  for (size_t group = 0; group < 2; ++group) {
    const Ended ended = finish(net, receiving[group]);
    CHECK(ended.done);
    for (size_t i = 0; i < 8; ++i) {
      const size_t at = (group * 8 + i) * room, bytes = size_of(group, i);
      CHECK(ended.bytes[i] == static_cast<int>(bytes));
      CHECK(std::memcmp(rank.in.data() + at, rank.out.data() + at, bytes) == 0);
      CHECK(rank.in[at + bytes] == std::byte{255});
    }
  }
}

void says_later_beyond_its_limits(const Net& net) {
  Rank rank(net);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> receiving, sending;
    for (int i = 0; i < nccl::requests_per_comm; ++i) {
      std::vector<void*> data(8, rank.in.data()), memories(8, rank.in_memory);
      void* request = nullptr;
      while (request == nullptr) {
        REQUIRE(net.irecv(rank.pair.receiver, data, std::vector<size_t>(8, 64),
                          std::vector<int>(8, 1), memories, &request) == Code::success);
      }
      receiving.push_back(request);
    }
    void* request = &rank;
    CHECK(net.irecv(rank.pair.receiver, rank.in.data(), 8, 1, rank.in_memory, &request) ==
          Code::success);
    CHECK(request == nullptr);
    for (int i = 0; i < 8 * nccl::requests_per_comm; ++i) sending.push_back(rank.send(64));
    CHECK(net.isend(rank.pair.sender, rank.out.data(), 8, 1, rank.out_memory, &request) ==
          Code::success);
    CHECK(request == nullptr);
    for (void* const one : receiving) CHECK(finish(net, one).done);
    for (void* const one : sending) CHECK(finish(net, one).done);
  }
}

void refuses_handles(const Net& net) {
  void* context = nullptr;
  REQUIRE(net.init(&context) == Code::success);
  NetHandle handle;
  void* listener = nullptr;
  void* sender = nullptr;
  REQUIRE(net.listen(context, handle, &listener) == Code::success);
  // The handles of another plugin and of another version, and one with each byte damaged.
  NetHandle other{};
  CHECK(net.connect(context, other, &sender) == Code::invalid_usage && warned());
  other = handle;
  other.bytes[4] ^= std::byte{1};
  CHECK(net.connect(context, other, &sender) == Code::remote_error && warned());
  for (size_t i = 6; i < 72; ++i) {
    other = handle;
    other.bytes[i] ^= std::byte{0x40};
    CHECK(net.connect(context, other, &sender) == Code::invalid_usage && sender == nullptr);
    CHECK(warned());
  }
  CHECK(net.close_listen(listener) == Code::success);
  // The listener is closed: the connection fails in bounded time.
  Code code = Code::success;
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (code == Code::success && sender == nullptr && std::chrono::steady_clock::now() < until) {
    code = net.connect(context, handle, &sender);
  }
  CHECK(code == Code::remote_error && sender == nullptr && warned());
  CHECK(net.finalize(context) == Code::success);
}

void refuses_wrong_memory(const Net& net) {
  Rank rank(net);
  void* request = nullptr;
  CHECK(net.irecv(rank.pair.receiver, rank.in.data() + 1, rank.in.size(), 1, rank.in_memory,
                  &request) == Code::invalid_usage);
  CHECK(request == nullptr && warned());
  CHECK(net.irecv(rank.pair.receiver, rank.in.data(), 8, 1, nullptr, &request) ==
        Code::invalid_usage);
  CHECK(warned());
  void* const receiving = rank.receive(100);
  // A receive may be larger than its send, never smaller.
  Code code = Code::success;
  for (int i = 0; i < 1'000'000 && code == Code::success; ++i) {
    code = net.isend(rank.pair.sender, rank.out.data(), 101, 1, rank.out_memory, &request);
  }
  CHECK(code == Code::invalid_usage && request == nullptr && warned());
  void* const sending = rank.send(100);
  CHECK(finish(net, receiving).done && finish(net, sending).done);
  // A request that is done is dead.
  int done = 0;
  CHECK(net.test(sending, &done, nullptr) == Code::invalid_argument && warned());
}

void counts_registrations(const Net& net) {
  Rank rank(net);
  std::vector<std::byte> memory(4096);
  void* first = nullptr;
  void* second = nullptr;
  REQUIRE(net.add(rank.pair.receiver, memory.data(), memory.size(), &first) == Code::success);
  REQUIRE(net.add(rank.pair.sender, memory.data(), memory.size(), &second) == Code::success);
  CHECK(first == second);
  CHECK(net.remove(rank.pair.sender, second) == Code::success);
  void* const receiving = receive(net, rank.pair.receiver, memory.data(), memory.size(), 1, first);
  CHECK(finish(net, rank.send(4096)).done && finish(net, receiving).done);
  // Memory that is deregistered while a receive is outstanding: nothing is written there, and the
  // end that would do so gets an error: the sender, or the receiver if the data is staged.
  std::memset(memory.data(), 7, memory.size());
  void* const lost = receive(net, rank.pair.receiver, memory.data(), memory.size(), 1, first);
  CHECK(net.remove(rank.pair.receiver, first) == Code::success);
  const Code sent = finish(net, rank.send(4096)).code;
  int done = 0;
  const Code received = net.test(lost, &done, nullptr);
  CHECK(sent == Code::remote_error || received == Code::invalid_usage);
  CHECK(done == 0 && warned());
  CHECK(memory[0] == std::byte{7} && memory[4095] == std::byte{7});
  CHECK(net.remove(rank.pair.receiver, first) == Code::invalid_usage && warned());
}

// Either end is closed while the other one waits: each request ends.
void ends_requests_of_closed_peers(const Net& net) {
  {
    Rank rank(net);
    CHECK(net.close_receive(rank.pair.receiver) == Code::success);
    Code code = Code::success;
    void* request = nullptr;
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (code == Code::success && std::chrono::steady_clock::now() < until) {
      code = net.isend(rank.pair.sender, rank.out.data(), 8, 1, rank.out_memory, &request);
      REQUIRE(request == nullptr);
    }
    CHECK(code == Code::remote_error && warned());
    NetHandle handle;
    void* listener = nullptr;
    REQUIRE(net.listen(rank.context, handle, &listener) == Code::success);
    CHECK(net.close_listen(rank.pair.listener) == Code::success);
    rank.pair.listener = listener;
    // So that the rank can close a receiver.
    void* other = nullptr;
    while (rank.pair.receiver != nullptr && other == nullptr) {
      void* again = nullptr;
      REQUIRE(net.connect(rank.context, handle, &other) == Code::success);
      REQUIRE(net.accept(listener, &again) == Code::success);
      if (again != nullptr) rank.pair.receiver = again;
    }
    CHECK(net.close_send(other) == Code::success);
  }
  {
    Rank rank(net);
    std::vector<void*> receiving;
    for (int i = 0; i < 8; ++i) receiving.push_back(rank.receive(512 << 10));
    for (int i = 0; i < 4; ++i) rank.send(512 << 10);
    // Its works end before this returns: the memory is NCCL's again.
    CHECK(net.close_send(rank.pair.sender) == Code::success);
    for (size_t i = 4; i < 8; ++i) CHECK(finish(net, receiving[i], 10s).code == Code::remote_error);
    CHECK(warned());
    const Pair other = make_pair(net, rank.context);
    rank.pair.sender = other.sender;
    CHECK(net.close_receive(other.receiver) == Code::success);
    CHECK(net.close_listen(other.listener) == Code::success);
  }
}

void connects_before_accept(const Net& net) {
  void* context = nullptr;
  REQUIRE(net.init(&context) == Code::success);
  NetHandle handle;
  void* listener = nullptr;
  REQUIRE(net.listen(context, handle, &listener) == Code::success);
  std::array<NetHandle, 5> handles;
  std::array<void*, 5> senders{}, receivers{};
  handles.fill(handle);
  for (int round = 0; round < 100; ++round) {
    for (size_t i = 0; i < handles.size(); ++i) {
      CHECK(net.connect(context, handles[i], &senders[i]) == Code::success);
      CHECK(senders[i] == nullptr);
    }
  }
  for (void*& receiver : receivers) {
    while (receiver == nullptr) REQUIRE(net.accept(listener, &receiver) == Code::success);
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    while (senders[i] == nullptr) {
      REQUIRE(net.connect(context, handles[i], &senders[i]) == Code::success);
    }
    CHECK(net.close_send(senders[i]) == Code::success);
    CHECK(net.close_receive(receivers[i]) == Code::success);
  }
  CHECK(net.close_listen(listener) == Code::success);
  CHECK(net.finalize(context) == Code::success);
}

// Communicators of several threads, as those of several proxies, at the same time.
void serves_several_threads(const Net& net) {
  std::vector<std::thread> all;
  for (unsigned thread = 0; thread < 4; ++thread) {
    all.emplace_back([&net, thread] {
      for (unsigned round = 0; round < 3; ++round) {
        Rank rank(net, 100'000);
        for (unsigned i = 0; i < 40; ++i) {
          rank.transfer(i * 2000 % 99'000, 99'000, thread * 1000 + round * 100 + i);
        }
      }
    });
  }
  for (std::thread& one : all) one.join();
}

// A child of fork has neither the device nor its threads: its calls return, and leave the parent's
// connection alone.
void refuses_children(const Net& net) {
  Rank rank(net);
  void* const receiving = rank.receive(200'000);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    void* context = nullptr;
    failures = 0;
    CHECK(finish(net, receiving).code == Code::system_error);
    CHECK(net.init(&context) == Code::system_error && context == nullptr);
    close_pair(net, rank.pair);
    CHECK(net.finalize(rank.context) == Code::success);
    CHECK(warned());
    _exit(failures);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(finish(net, rank.send(200'000)).done && finish(net, receiving).done);
}

// NCCL gives a connection up (ncclCommAbort): the last communicator ends it.
void gives_connections_up(const Net& net) {
  const size_t threads_before = threads();
  void* context = nullptr;
  REQUIRE(net.init(&context) == Code::success);
  NetHandle handle;
  void* listener = nullptr;
  void* sender = nullptr;
  REQUIRE(net.listen(context, handle, &listener) == Code::success);
  REQUIRE(net.connect(context, handle, &sender) == Code::success && sender == nullptr);
  CHECK(net.close_listen(listener) == Code::success);
  CHECK(net.finalize(context) == Code::success);
  CHECK(threads() == threads_before);  // the device is closed
}

void refuses_devices() {
  const Net net(plugin, Net::newest);
  const std::string good = std::getenv("URMA_NCCL_DEVICE");
  void* context = nullptr;
  for (const char* const bad : {"udp:300.0.0.1", "none:", "cxl:?size=none", "udp:127.0.0.1?mtu=7",
                                "udp:127.0.0.1?engines=2"}) {
    setenv("URMA_NCCL_DEVICE", bad, 1);
    CHECK(net.init(&context) != Code::success && context == nullptr && warned());
    CHECK(net.finalize(context) == Code::success);
  }
  setenv("URMA_NCCL_DEVICE", good.c_str(), 1);
  for (const char* const variable :
       {"URMA_NCCL_TIMEOUT", "URMA_NCCL_SPEED", "URMA_NCCL_STAGE", "URMA_NCCL_COPIER"}) {
    setenv(variable, "fast", 1);
    CHECK(net.init(&context) == Code::invalid_usage && warned());
    unsetenv(variable);
  }
  setenv("URMA_NCCL_TIMEOUT", patience, 1);
  setenv("URMA_NCCL_COPIER", "1", 1);
  setenv("URMA_NCCL_SPED", "400000", 1);
  REQUIRE(net.init(&context) == Code::success);
  CHECK(warned());
  CHECK(net.finalize(context) == Code::success);
  unsetenv("URMA_NCCL_SPED");
  setenv("URMA_NCCL_SPEED", "400000", 1);
  REQUIRE(net.init(&context) == Code::success);
  CHECK(net.properties().speed_mbps == 400'000);
  CHECK(net.finalize(context) == Code::success);
  unsetenv("URMA_NCCL_SPEED");
}

// NCCL unloads a plugin with its last communicator, and may load it again. The file stays in the
// process, and nothing else.
void leaves_nothing_behind(int version) {
  size_t descriptors_before = 0, threads_before = 0;
  double mib_before = 0;
  for (int round = 0; round < 10; ++round) {
    {
      const Net net(plugin, version);
      Rank rank(net);
      rank.transfer(100'000, 100'000, static_cast<unsigned>(round));
    }
    if (round == 0) {
      descriptors_before = descriptors();
      threads_before = threads();
      mib_before = resident_mib();
    }
    CHECK(!resident_has_grown(mib_before));
    CHECK(descriptors() == descriptors_before);
    CHECK(threads() == threads_before);
  }
}

int run() {
  // Also on machines with few processors, and on busy ones.
  setenv("URMA_NCCL_COPIER", "1", 1);
  setenv("URMA_NCCL_TIMEOUT", patience, 1);
  for (const std::string& device : devices_of_tests()) {
    setenv("URMA_NCCL_DEVICE", device.c_str(), 1);
    for (int version = Net::oldest; version <= Net::newest; ++version) {
      const Net net(plugin, version);
      shows_its_properties(net);
      carries_all_sizes(net);
      fills_grouped_receives(net);
    }
    for (const int version : {11, 12}) leaves_nothing_behind(version);
    const Net net(plugin, Net::newest);
    takes_optional_completion(net);
    waits_for_the_receive(net);
    says_later_beyond_its_limits(net);
    connects_before_accept(net);
    CHECK(!warned());
    refuses_handles(net);
    refuses_wrong_memory(net);
    counts_registrations(net);
    ends_requests_of_closed_peers(net);
    serves_several_threads(net);
    refuses_children(net);
    gives_connections_up(net);
    refuses_devices();
  }
  leaves_nothing_behind(8);
  remove_window();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace urma::test

int main(int count, char** words) {
  REQUIRE(count == 2);
  urma::test::plugin = words[1];
  return urma::test::run();
}
