// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <array>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "urma/core/endpoint.h"
#include "urma/core/time.h"

struct ibv_ah;

namespace urma::drivers::verbs {

// Where the datagrams to one endpoint go. The adapter knows the way by an address handle.
struct Destination {
  ibv_ah* handle = nullptr;
  uint32_t number = 0;  // of the queue pair
  uint32_t key = 0;     // that the queue pair expects
};

// Finds queue pairs. It may take milliseconds for each, so it answers later.
class Finder {
 public:
  struct Answer {
    Endpoint of;
    Destination destination = {};  // without a handle, if no device answers there
  };

  virtual ~Finder() = default;
  // Takes a question. Returns false if there are too many.
  virtual bool ask(const Endpoint& to) = 0;
  // Writes answers to the front of `out`, and returns how many.
  virtual size_t take(std::span<Answer> out) = 0;
  // Destroys a handle, once datagrams that were sent by it have left.
  virtual void discard(ibv_ah* handle) = 0;
};

// The destinations of a device's datagrams. Asks for one when it is first used, and again when the
// endpoint may have another queue pair, as a process has that restarts at the same address. Owns
// the handles. Used by one thread at a time.
class AddressBook {
 public:
  static constexpr uint32_t most = 4096;
  // The book asks again for an endpoint that is silent for this time while the device sends to it.
  // Each pause after a question is twice as long as the one before, until the endpoint is heard.
  static constexpr Duration patience = std::chrono::milliseconds(100);
  static constexpr Duration first_pause = std::chrono::milliseconds(10);
  static constexpr Duration longest_pause = std::chrono::seconds(1);

  explicit AddressBook(Finder& finder);
  ~AddressBook();

  // Returns where datagrams to `to` go, or null if that is not known yet, or was never answered.
  // Valid until the next call.
  const Destination* find(const Endpoint& to, Time now);
  // Returns whether an answer for `to`, which is not known, may come soon.
  bool awaits(const Endpoint& to);
  // Notes a datagram from an endpoint, and the number of the queue pair that sent it.
  void heard(const Endpoint& from, uint32_t number, Time now);
  // Takes answers. `news` is called with each endpoint, and whether it is known.
  template <class News>
  void update(Time now, News&& news) {
    std::array<Finder::Answer, 16> answers;
    const size_t count = finder_.take(answers);
    for (size_t i = 0; i < count; ++i) {
      note(answers[i], now);
      news(answers[i].of, answers[i].destination.handle != nullptr);
    }
  }

 private:
  struct Entry {
    Endpoint at;
    Destination destination = {};
    Time used{};   // the time of the last `find`
    Time heard{};  // that of the last datagram, or when the destination became known
    Time ask_at{};
    Duration pause = first_pause;
    bool absent = false;  // the last answer was that no device is there
  };
  struct HashOf {
    uint64_t operator()(const Endpoint& at) const;
  };

  Entry& entry_of(const Endpoint& at);
  Entry* look_up(const Endpoint& at);
  void ask(Entry& entry, Time now);
  void note(const Finder::Answer& answer, Time now);

  const pid_t maker_ = getpid();
  Finder& finder_;
  FlatMap<Endpoint, HashOf> index_{most};
  std::vector<Entry> entries_;
  uint32_t latest_ = 0;  // the entry that was looked up last
};

}  // namespace urma::drivers::verbs
