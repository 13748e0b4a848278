#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bell.h"
#include "drivers/device_string.h"
#include "urma/core/balance.h"
#include "urma/core/driver_info.h"
#include "urma/core/path.h"
#include "urma/core/result.h"
#include "urma/core/segment_options.h"
#include "urma/core/setting.h"
#include "urma/core/time.h"
#include "wire/frame.h"
#include "wire/ways.h"

namespace urma::drivers {

// Where segments of the medium's memory lie in this process. Whose they are, and whether they may
// be used, only `Ways::hold` says: this is for having lines fetched ahead.
struct MappedMemory {
  std::byte* base = nullptr;
  uint64_t granule_bytes = 0;
  unsigned offset_bits = 0;
  bool in_a_row = true;  // false: each lies elsewhere

  const std::byte* at(uint64_t address) const {
    const uint64_t granule = address << 1 >> (offset_bits + 1);
    const uint64_t offset = address & ((uint64_t{1} << offset_bits) - 1);
    return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(base) +
                                              granule * granule_bytes + offset);
  }
};

// What a medium is, as data: the layers above adapt to it.
struct PortFacts {
  Endpoint self;              // where others reach this port
  Eid eid;                    // the entity that lives there
  uint32_t mtu = 1024;        // largest payload of a UB packet: a power of two, 1024 to 65536
  uint32_t buffer_bytes = 0;  // what it can hold that has not been received yet
  // It loses nothing and keeps the order of what one endpoint sends to another: then it has `ways`.
  bool lossless = false;
  // Where others reach it over each of its paths, first `self`; empty: there is one.
  std::vector<Endpoint> paths = {};
  Balance balance = Balance::slice;  // over them, unless the application says otherwise
  // Packets of one endpoint to another overtake each other as a rule: many paths, injected delays.
  bool reorders = false;
  MappedMemory mapped = {};  // none, if it has no `memory`
  // The file whose file system gives memory for the ways to each peer; an empty path: none does.
  struct Backing {
    std::string path;
    uint64_t bytes_for_each_peer = 0;
    std::string cure = {};  // when all ways that it has room for are in use
  };
  Backing backing = {};
  std::string description;  // for people: what was chosen and why
  SettingList settings;     // the same, one by one: the options as they were read, and what is
};

// Counted by the driver's thread; a snapshot for statistics.
struct PortCounters {
  uint64_t frames_sent = 0;
  uint64_t frames_received = 0;
  uint64_t calls_sent = 0;  // system calls, or their like
  uint64_t calls_received = 0;
  uint64_t send_failures = 0;  // frames that the medium did not take
  uint64_t unreachable = 0;    // told so by the other side's host
  uint64_t malformed = 0;      // what came and was no frame
  uint64_t refused = 0;        // who asked for memory with a wrong token
  uint64_t unheard = 0;        // who asked while too many did so
  uint64_t injected = 0;       // faults, by a wrapper
  int latest_failure = 0;      // errno of the last of send_failures, if the system gave one
  uint64_t uncaptured = 0;     // packets that a wrapper could not write down
  // Why no way could be made when one was last asked for; none: it was made.
  Ways::Shortage shortage = Ways::Shortage::none;
};

// The clock that a simulated medium runs on. Real ones have none: the engine reads the machine's.
class VirtualClock {
 public:
  virtual ~VirtualClock() = default;
  virtual Time now() const = 0;
  // What runs when something arrives at its endpoint, or when the time comes that its last pass
  // returned. An engine attaches itself at open and detaches before it goes.
  class Driven {
   public:
    virtual ~Driven() = default;
    virtual Time pass(Time now) = 0;
  };
  // One that lives at several endpoints attaches itself at each of them.
  virtual void attach(Driven& driven, const Endpoint& at) = 0;
  virtual void detach(Driven& driven) = 0;
  // Something was posted to it: it runs at the current time.
  virtual void poke(Driven& driven) = 0;
  // Lets time go on by one event. False: nothing will ever happen by itself.
  virtual bool step(Time until) = 0;
  virtual uint64_t seed() = 0;
};

// Whom a medium asks that compares tokens itself. Engine thread; seldom.
class TokenJudge {
 public:
  virtual ~TokenJudge() = default;
  // False: it has guessed too much, and is not listened to for a while. `who` is the medium's word
  // for somebody who is always the same.
  virtual bool hears(const Eid& who, Time now) = 0;
  // It has shown this token, which is not good: it was once, or it is a guess.
  virtual void wrong(const Eid& who, TokenId id, TokenValue token, Time now) = 0;
};

// Memory for segments that others on this medium map as well: what lies there they read and write
// by themselves (Ways::hold). Engine thread, but for what takes its time and is not for a pass.
class SegmentMemory {
 public:
  virtual ~SegmentMemory() = default;

  struct Lease {
    uint32_t number = 0;   // the medium's, of the segment
    uint64_t address = 0;  // by which all know its first byte
    std::byte* base = nullptr;
    uint64_t bytes = 0;
  };
  // Not now: somebody else is at it.
  enum class Taken : uint8_t { taken, not_now, no_room };
  virtual Taken take(uint64_t bytes, Lease& lease) = 0;
  // Before it is used: zeros, and the system has memory for all of them. False: it has not. Not in
  // a pass.
  virtual bool prepare(const Lease& lease) = 0;
  // From now on others may use it so. Of what is granted already only the tokens may be others, one
  // of them the same as before.
  struct Grant {
    TokenId id{};
    TokenValue token{};
    TokenValue older{};   // is as good
    bool checked = true;  // false: neither is asked for
    Rights rights = Rights::local_only;
    AtomicDomain atomics = AtomicDomain::processor;
  };
  virtual void grant(const Lease& lease, const Grant& grant) = 0;
  // Nobody begins to any more. Those who had begun hold it for another moment.
  virtual void revoke(const Lease& lease) = 0;
  virtual void revoke_all() = 0;
  // Cold: may ask the system whether who holds it lives.
  virtual bool held(const Lease& lease) = 0;
  // Revoked, and held for longer than its owner waits: the owner gets other pages at its address,
  // with the same bytes, and who holds it writes where nobody looks. The owner must not write
  // meanwhile. False: pages of this medium cannot be moved, or there are none. Not in a pass.
  virtual bool move(const Lease& lease) = 0;
  // Others may use it without holding it: it is moved as soon as it is revoked.
  virtual bool loose(const Lease& lease) const = 0;
  // It has been: what its owner has is nobody else's.
  virtual bool moved(const Lease& lease) const = 0;
  // Undoes `move`; the bytes are void. False: it could not, and the lease must be kept. Not in a
  // pass.
  virtual bool restore(const Lease& lease) = 0;
  // Revoked, restored, and held by nobody: its memory goes back to the system. Not in a pass.
  virtual void empty(const Lease& lease) = 0;
  // Revoked. Who holds it still may write there: until then nobody else gets it.
  virtual void give_back(const Lease& lease) = 0;
  // All that is revoked and held, whoever's it was. Returns how many, of `most_quarantined`.
  static constexpr size_t most_quarantined = 256;
  virtual size_t quarantined(std::span<Quarantined> out) = 0;
  // From now on until no pass uses the port any more. Nobody: all are heard.
  virtual void set_judge(TokenJudge* judge) = 0;
};

class PacketPort;

// A port that is several, of which some come and go while it is open. Engine thread, but for what
// takes its time.
class PathPorts {
 public:
  virtual ~PathPorts() = default;

  // A port that can be one of them, and what is made for it before a pass.
  class Joining {
   public:
    virtual ~Joining() = default;
    virtual const Endpoint& self() const = 0;
  };
  // Any thread.
  virtual Result<std::unique_ptr<Joining>> prepare(std::string_view device) = 0;
  // It takes a place where none is.
  virtual void join(uint8_t place, Joining& joining) = 0;
  // Takes in nothing more there.
  virtual void stop(uint8_t place) = 0;
  // After that, and when all frames that it was given have settled.
  virtual std::unique_ptr<PacketPort> part(uint8_t place) = 0;
};

// A port that carries packets, in bursts. A frame is in exactly one place: free, lent, in the
// device, received. One thread at a time; nothing blocks; nothing allocates after open.
class PacketPort {
 public:
  virtual ~PacketPort() = default;

  virtual const PortFacts& facts() const = 0;
  virtual PortCounters counters() const = 0;

  // Lends empty frames; returns how many, from the front of `frames`.
  virtual size_t lend(std::span<TxFrame*> frames) = 0;
  // Takes filled frames, in order, and returns how many of them it took; the others stay lent.
  // The port may read what a frame's pieces name until `settled` has passed the frame, and never
  // after that. What the medium loses is lost.
  virtual size_t send(std::span<TxFrame* const> frames, Time now) = 0;
  // Gives frames back unsent.
  virtual void unlend(std::span<TxFrame* const> frames) = 0;
  // How many of the frames that `send` has taken since open will not be read any more, counted in
  // the order in which `send` took them. It never falls, and reaches all of them though nothing
  // more is sent. It may lag behind what has left, and behind what peers have answered. A port may
  // advance it in `send` and `receive` alone, and wakes nobody for it: whoever waits for it asks.
  // A port that is destroyed reads nothing any more, whatever had settled.
  virtual uint64_t settled() = 0;

  // Frames that have come, at most as many as `frames` holds; each must be released.
  virtual size_t receive(std::span<RxFrame> frames, Time now) = 0;
  virtual void release(std::span<const RxFrame> frames) = 0;

  // One of them becomes readable when `receive` may have something, though perhaps not in its next
  // call: the same ones from open on, at most `most_descriptors`; none where there are none.
  static constexpr size_t most_descriptors = 4 * most_paths;
  virtual std::span<const int> descriptors() const = 0;
  // Where whoever runs this port sleeps, if it is not at the descriptors: senders ring it.
  virtual Bell* bell() { return nullptr; }
  // Not null: it is lossless, and frames are sent only where there is room for them.
  virtual Ways* ways() { return nullptr; }
  // Not null: segments can lie in memory of the medium's.
  virtual SegmentMemory* memory() { return nullptr; }
  // Not null: ports can be added to it and taken away.
  virtual PathPorts* path_ports() { return nullptr; }
  // When `receive` is to be called though nothing comes: a frame that is held back (a simulated
  // delay) is due then, or what a wrapper has gathered. `never` if there is nothing of the kind.
  virtual Time next_arrival() const { return never; }
  // Not null: time is simulated.
  virtual VirtualClock* clock() { return nullptr; }
  // Its process is gone, as if it had been killed: nobody is told, what others see of it is what
  // the system leaves, and what it had received is not released. Nothing but destruction follows.
  // Only simulations need it; a port of which others see nothing has nothing to do.
  virtual void abandon() {}
};

// A kind of port. To add one: a folder with a `Driver`, and `urma_driver(<name>)` in CMake.
struct Driver {
  std::string_view name;
  std::string_view summary;
  // Two devices that reach each other, of each kind of port: what the conformance suite opens.
  using Pair = std::array<std::string_view, 2>;
  std::span<const Pair> pairs;
  Result<std::unique_ptr<PacketPort>> (*open)(const DeviceString& device);
  // How its device strings are written (FormInfo). `options` asks the reader for each option there
  // is, as `open` does.
  struct Form {
    std::string_view text;
    std::string_view meaning;
    std::string_view example;
    void (*options)(OptionReader& reader);
    bool wraps = false;
  };
  std::span<const Form> forms = {};
};

// All drivers built into this library.
std::span<const Driver* const> all_drivers();
// What there is to know of them without opening anything.
std::vector<DriverInfo> describe_drivers();
// Opens what a parsed device string names, wrappers included.
Result<std::unique_ptr<PacketPort>> open_port(const DeviceString& device);

}  // namespace urma::drivers
