// SPDX-License-Identifier: Apache-2.0
// A key-value store whose values are read one-sidedly: `get` reads the server's memory, and the
// server's process does nothing for it. `put` is a message; one process alone changes the memory.
//
//   example_kv serve [DEVICE]             until it is killed
//   example_kv put KEY VALUE [HOST [DEVICE]]
//   example_kv get KEY [HOST [DEVICE]]
//   example_kv churn KEY COUNT            puts COUNT values, each of one letter, of many lengths
//   example_kv watch KEY COUNT            reads it COUNT times; counts torn reads and wrong values
//
// The table is open addressing in one segment. A slot has a version: even when it is at rest, odd
// while it is being written. A reader reads the version, then the slot, then the version again: if
// both versions are the same even number, nothing was written between them. That takes three reads,
// each posted when the one before it has completed, because otherwise the order in which bytes are
// copied is not defined.
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <urma/urma.hpp>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Slot {
  uint64_t version;  // 0 means never written
  uint32_t key_bytes;
  uint32_t value_bytes;
  std::array<char, 48> key;
  std::array<char, 960> value;
};
static_assert(sizeof(Slot) == 1024);

// A put, as it is sent: the used part of a Slot.
struct Put {
  uint32_t key_bytes;
  uint32_t value_bytes;
  std::array<char, sizeof Slot::key + sizeof Slot::value> text;  // the key, followed by the value
};

constexpr size_t slots = 4096;
constexpr size_t probes = 16;  // a key is in one of this many slots

size_t slot_of(std::string_view key, size_t probe) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : key) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return (hash + probe) % slots;
}

// ---- the server

std::string_view key_of(const Slot& slot) { return {slot.key.data(), slot.key_bytes}; }

void store(std::span<Slot> table, std::string_view key, std::string_view value) {
  for (size_t probe = 0; probe < probes; ++probe) {
    Slot& slot = table[slot_of(key, probe)];
    std::atomic_ref version(slot.version);
    const uint64_t before = version.load(std::memory_order_relaxed);
    if (before != 0 && key_of(slot) != key) continue;
    version.store(before + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // odd, before any byte changes
    slot.key_bytes = static_cast<uint32_t>(key.size());
    slot.value_bytes = static_cast<uint32_t>(value.size());
    std::memcpy(slot.key.data(), key.data(), key.size());
    std::memcpy(slot.value.data(), value.data(), value.size());
    version.store(before + 2, std::memory_order_release);  // even, after all bytes have changed
    return;
  }
  std::printf("no slot left for \"%.*s\"\n", static_cast<int>(key.size()), key.data());
}

// A message of another process may contain anything.
void take(std::span<Slot> table, std::span<const std::byte> message) {
  constexpr size_t head = offsetof(Put, text);
  Put put{};
  if (message.size() < head || message.size() > sizeof put) return;
  std::memcpy(&put, message.data(), message.size());
  if (put.key_bytes == 0 || put.key_bytes > sizeof Slot::key ||
      put.value_bytes > sizeof Slot::value ||
      message.size() != head + put.key_bytes + put.value_bytes) {
    return;
  }
  store(table, {put.text.data(), put.key_bytes},
        {put.text.data() + put.key_bytes, put.value_bytes});
}

int serve(const std::string& device_text) {
  auto device = urma::open(device_text).value();
  auto segment = device.allocate(slots * sizeof(Slot), urma::Rights::read).value();
  const std::span table(reinterpret_cast<Slot*>(segment.bytes().data()), slots);
  constexpr size_t buffers = 64;
  std::vector<std::array<std::byte, sizeof(Put)>> messages(buffers);
  auto jetty = device.jetty({.berths = 0, .receives = buffers}).value();
  const auto receive = [&](size_t i) {
    if (!jetty.receive(messages[i], i)) throw std::runtime_error("a receive buffer was not taken");
  };
  for (size_t i = 0; i < buffers; ++i) receive(i);
  device.publish("kv", segment, jetty, urma::everyone()).value();
  std::printf("kv at %s\n", to_string(device.endpoint()).c_str());
  std::fflush(stdout);
  for (;;) {
    for (const auto& arrival : jetty.wait(1h)) {
      if (!arrival.ok()) continue;
      take(table, std::span(messages[arrival.tag]).first(arrival.bytes));
      receive(arrival.tag);
    }
  }
}

// ---- the client

class Client {
 public:
  Client(const std::string& host, const std::string& device_text)
      : device_(urma::open(device_text).value()),
        store_(device_.import("urma://" + host + "/kv").value()),
        jetty_(device_.jetty({.berths = 1}).value()) {}

  // Returns once the value can be read.
  void put(std::string_view key, std::string_view value) {
    if (key.empty() || key.size() > sizeof Slot::key || value.size() > sizeof Slot::value) {
      throw std::runtime_error("a key has 1 to 48 bytes, a value at most 960");
    }
    const uint64_t before = version_of(key);
    Put put{.key_bytes = static_cast<uint32_t>(key.size()),
            .value_bytes = static_cast<uint32_t>(value.size()),
            .text = {}};
    std::memcpy(put.text.data(), key.data(), key.size());
    std::memcpy(put.text.data() + key.size(), value.data(), value.size());
    const auto bytes = std::as_bytes(std::span(&put, 1));
    run(urma::send(bytes.first(offsetof(Put, text) + key.size() + value.size()), store_.jetty));
    for (const auto limit = Clock::now() + 5s; version_of(key) == before;) {
      if (Clock::now() > limit) throw std::runtime_error("the server has not stored it");
    }
  }

  std::optional<std::string> get(std::string_view key) {
    if (!find(key)) return std::nullopt;
    return std::string(slot_.value.data(), slot_.value_bytes);
  }

  uint64_t torn() const { return torn_; }

 private:
  uint64_t version_of(std::string_view key) { return find(key) ? slot_.version : 0; }

  // Leaves a consistent copy of the slot in slot_.
  bool find(std::string_view key) {
    for (size_t probe = 0; probe < probes; ++probe) {
      read_whole(slot_of(key, probe));
      if (slot_.version == 0) return false;
      if (key_of(slot_) == key) return true;
    }
    return false;
  }

  void read_whole(size_t number) {
    const uint64_t at = number * sizeof(Slot);
    for (;; ++torn_) {
      uint64_t before = 0;
      uint64_t after = 0;
      run(urma::read(std::as_writable_bytes(std::span(&before, 1)), store_.segment, at));
      run(urma::read(std::as_writable_bytes(std::span(&slot_, 1)), store_.segment, at));
      run(urma::read(std::as_writable_bytes(std::span(&after, 1)), store_.segment, at));
      slot_.version = before;
      if (before == after && before % 2 == 0) break;
    }
    // The slot is consistent, but its numbers cannot be those of a store.
    if (slot_.key_bytes > slot_.key.size() || slot_.value_bytes > slot_.value.size()) {
      throw std::runtime_error("that is not a store of this kind");
    }
  }

  void run(const urma::Work& work) {
    if (jetty_.post(work) != 1) throw std::runtime_error("the work was not taken");
    for (;;) {
      for (const auto& done : jetty_.wait(10s)) {
        if (done.ok()) return;
        const auto& info = urma::describe(done.status);
        throw std::runtime_error(std::string(info.meaning) + " Fix: " + std::string(info.cure));
      }
    }
  }

  urma::Device device_;
  urma::Imported store_;
  urma::Jetty jetty_;
  Slot slot_{};
  uint64_t torn_ = 0;
};

// ---- commands with which the test checks reads

int churn(Client& client, const std::string& key, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    client.put(key, std::string(100 + i * 37 % 800, static_cast<char>('a' + i % 26)));
  }
  return 0;
}

int watch(Client& client, const std::string& key, uint64_t count) {
  uint64_t wrong = 0;
  uint64_t changes = 0;
  std::string last;
  for (uint64_t i = 0; i < count; ++i) {
    const auto value = client.get(key);
    if (!value) continue;
    wrong += value->empty() || value->find_first_not_of((*value)[0]) != value->npos;
    changes += *value != last;
    last = *value;
  }
  std::printf("torn %llu, changes %llu, wrong %llu\n",
              static_cast<unsigned long long>(client.torn()),
              static_cast<unsigned long long>(changes), static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) try {
  const auto word = [&](int at, std::string_view otherwise) {
    return std::string(at < count ? words[at] : otherwise);
  };
  const std::string what = word(1, "");
  if (what == "serve") return serve(word(2, urma::default_device));
  const bool two = what == "put" || what == "churn" || what == "watch";
  if (count < (two ? 4 : 3) || (!two && what != "get")) {
    std::fprintf(stderr,
                 "usage: example_kv serve [DEVICE] | put KEY VALUE [HOST [DEVICE]] | get KEY "
                 "[HOST [DEVICE]] | churn KEY COUNT | watch KEY COUNT\n");
    return 2;
  }
  Client client(word(two ? 4 : 3, "localhost"), word(two ? 5 : 4, urma::default_device));
  const std::string key = word(2, "");
  if (what == "put") return client.put(key, word(3, "")), 0;
  if (what == "get") {
    const auto value = client.get(key);
    std::printf("%s\n", value ? value->c_str() : "(nothing)");
    return value ? 0 : 1;
  }
  uint64_t number = 0;
  const std::string text = word(3, "");
  std::from_chars(text.data(), text.data() + text.size(), number);
  return what == "churn" ? churn(client, key, number) : watch(client, key, number);
} catch (const std::exception& e) {
  std::fprintf(stderr, "example_kv: %s\n", e.what());
  return 1;
}
