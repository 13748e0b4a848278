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
#include "urma/core/observed.h"
#include "urma/core/path.h"
#include "urma/core/result.h"
#include "urma/core/segment_options.h"
#include "urma/core/setting.h"
#include "urma/core/time.h"
#include "wire/cci.h"
#include "wire/frame.h"
#include "wire/ways.h"

namespace urma::drivers {

// The address at which the medium's memory for segments is mapped in this process. Only for
// prefetching cache lines: `Ways::hold` decides whether a segment may be accessed.
struct MappedMemory {
  std::byte* base = nullptr;
  uint64_t granule_bytes = 0;
  unsigned offset_bits = 0;
  bool in_a_row = true;  // whether `at` is valid: otherwise each segment is mapped elsewhere

  // Returns the local address of the byte that has this address in the medium.
  const std::byte* at(uint64_t address) const {
    const uint64_t granule = address << 1 >> (offset_bits + 1);
    const uint64_t offset = address & ((uint64_t{1} << offset_bits) - 1);
    return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(base) +
                                              granule * granule_bytes + offset);
  }
};

// The properties of a medium, to which the layers above adapt. Constant after open.
struct PortFacts {
  // The address at which peers reach this port.
  Endpoint self;
  // The entity at that address.
  Eid eid;
  // The largest payload of a UB packet in bytes: a power of two, 1024 to 65536.
  uint32_t mtu = 1024;
  // The most bytes that wait in the port until they are received.
  uint32_t buffer_bytes = 0;
  // Whether the medium loses nothing and keeps the order between two endpoints. Such a port has
  // `ways`.
  bool lossless = false;
  // Says to people why the channels of a lossless medium have no congestion control.
  static constexpr std::string_view lossless_text =
      "the medium loses nothing, so that its channels need none";
  // The addresses of the port's paths, `self` first; empty if the port has only one path.
  std::vector<Endpoint> paths = {};
  // How traffic is spread over the paths, unless the application chooses.
  Balance balance = Balance::slice;
  // Whether packets between two endpoints often overtake one another, because of several paths or
  // injected delays.
  bool reorders = false;
  // The fields that travel with a packet outside of its bytes, and that the network may change. A
  // field that the port does not carry is neither sent nor received.
  struct Carries {
    bool ecn = false;  // TxFrame::ecn, RxFrame::ecn
    // Congestion control information: TxFrame::cci, RxFrame::cci and switch_queue.
    bool cci = false;
    // Other fields of NTH, which the port sets by itself: load balance factor, virtual lane.
    bool lbf = false;
    bool vl = false;
  };
  Carries carries = {};
  // How the switches that this port knows read the hints in the CCI of its packets. A sender must
  // not ask in another way.
  congestion::Metering metering = congestion::Metering::none;
  // Whether the descriptors are signalled only between `arm` and `disarm`, because each signal
  // costs the peer a system call. The other ends of such a port are threads that poll.
  bool arms = false;
  // The rate of the link over which packets leave; 0 if it is not known. With several paths it is
  // that of the fastest one.
  uint64_t line_bytes_per_second = 0;
  // How late an end may run: the longest time from the arrival of a packet, or the expiry of a
  // timer, until the engine runs, on a machine that has a processor for it. Each interval
  // that depends on the other end must include it: the delay of an acknowledgement, the time before
  // a probe, the least time-out, and how far a packet may be behind those of other routes.
  Duration scheduling_delay = std::chrono::milliseconds(1);
  // The mapped segments; empty if the port has no `memory`.
  MappedMemory mapped = {};
  // The file whose file system has the memory for the ways to peers. The path is empty if there is
  // none.
  struct Backing {
    std::string path;
    uint64_t bytes_for_each_peer = 0;
    std::string cure = {};  // for people: what to do when all ways that it has room for are in use
  };
  Backing backing = {};
  // The counters that only this medium has, for observers: at most PacketPort::most_metrics.
  std::vector<ObservedMetric> metrics = {};
  // A text for people: the values that the port chose, and why.
  std::string description;
  // The options of the device string and the values in effect, one by one.
  SettingList settings;
};

// The counters of a port since open. Written by the thread that runs the port.
struct PortCounters {
  uint64_t frames_sent = 0;
  uint64_t frames_received = 0;
  uint64_t calls_sent = 0;      // system calls to send, or their equivalent
  uint64_t calls_received = 0;  // system calls to receive, or their equivalent
  uint64_t send_failures = 0;   // frames that the medium refused
  uint64_t unreachable = 0;     // reports of the network that a destination cannot be reached
  uint64_t malformed = 0;       // received data that was not a frame
  uint64_t refused = 0;         // requests for memory with a wrong token
  uint64_t unheard = 0;     // requests dropped because the process had sent too many wrong tokens
  uint64_t injected = 0;    // faults that a wrapper has made
  int latest_failure = 0;   // errno of the last of send_failures, if the system gave one
  uint64_t uncaptured = 0;  // packets that a wrapper could not write to its file
  // Why the last attempt to make a way failed; `none` if it succeeded.
  Ways::Shortage shortage = Ways::Shortage::none;
};

// The clock of a simulated medium. Other media have none, and the engine reads the system's clock.
class VirtualClock {
 public:
  virtual ~VirtualClock() = default;
  virtual Time now() const = 0;
  // An engine, whose `pass` is run when something arrives at its endpoint, and at the time that its
  // last pass returned. An engine attaches itself at open, and detaches before it is destroyed.
  class Driven {
   public:
    virtual ~Driven() = default;
    virtual Time pass(Time now) = 0;
  };
  // Attaches an engine at one of its endpoints. The engine calls it for each of these.
  virtual void attach(Driven& driven, const Endpoint& at) = 0;
  virtual void detach(Driven& driven) = 0;
  // Runs the engine at the current time, because something was posted to it.
  virtual void poke(Driven& driven) = 0;
  // Advances time by one event, at most to `until`. Returns false if no event is planned.
  virtual bool step(Time until) = 0;
  virtual uint64_t seed() = 0;
};

// Judges the processes that ask a medium for memory, if the medium compares tokens itself. Seldom
// called, by the thread that runs the port.
class TokenJudge {
 public:
  virtual ~TokenJudge() = default;
  // Returns whether requests of `sender` are answered. Returns false for a while after too many
  // wrong tokens. `sender` identifies a process or a user, always by the same value for the same
  // one.
  virtual bool admits(const Eid& sender, Time now) = 0;
  // Reports that `sender` has sent a token that is not valid: an old one, or a guess.
  virtual void wrong(const Eid& sender, TokenId id, TokenValue token, Time now) = 0;
};

// Memory for segments that the other devices on this medium map as well, so that they read and
// write it by themselves (Ways::hold). Called by the thread that runs the port. Functions that are
// marked "not in a pass" may take long; any thread may call them, and the port may be run
// meanwhile.
class SegmentMemory {
 public:
  virtual ~SegmentMemory() = default;

  // Memory for one segment.
  struct Lease {
    uint32_t number = 0;   // of the segment, in the medium
    uint64_t address = 0;  // of its first byte, as all devices name it
    std::byte* base = nullptr;
    uint64_t bytes = 0;
  };
  // not_now: another process holds the lock of the medium.
  enum class Taken : uint8_t { taken, not_now, no_room };
  virtual Taken take(uint64_t bytes, Lease& lease) = 0;
  // Fills the memory with zeros, after `take`. Returns false if the system has no memory for all of
  // it. Not to be called in a pass.
  virtual bool prepare(const Lease& lease) = 0;
  // Rights and tokens of a segment.
  struct Grant {
    TokenId id{};
    TokenValue token{};
    TokenValue older{};   // valid as well
    bool checked = true;  // whether a token must be shown at all
    Rights rights = Rights::local_only;
    AtomicDomain atomics = AtomicDomain::processor;
  };
  // Lets the other devices use the memory. A second grant may change only the tokens, and must keep
  // one of the two.
  virtual void grant(const Lease& lease, const Grant& grant) = 0;
  // Ends the grant: no device begins an access any longer. Accesses in progress hold the memory for
  // another moment.
  virtual void revoke(const Lease& lease) = 0;
  virtual void revoke_all() = 0;
  // Returns whether a device still holds the memory. May ask the system whether that device's
  // process exists.
  virtual bool held(const Lease& lease) = 0;
  // For memory that is revoked, and held for longer than its owner waits: replaces the owner's
  // pages by private copies with the same content, so that later stores of the holder have no
  // effect. The owner must not write meanwhile. Returns false if pages of this medium cannot be
  // replaced, or there is not enough memory. Not to be called in a pass.
  virtual bool move(const Lease& lease) = 0;
  // Returns whether other devices may use the memory without holding it. Such memory must be moved
  // as soon as it is revoked.
  virtual bool loose(const Lease& lease) const = 0;
  // Returns whether the memory was moved, so that only its owner can access it.
  virtual bool moved(const Lease& lease) const = 0;
  // Undoes `move`; the content is undefined afterwards. Returns false if that failed: the lease
  // must then be kept. Not to be called in a pass.
  virtual bool restore(const Lease& lease) = 0;
  // Releases the pages to the system, for memory that is revoked, restored and not held. Not to be
  // called in a pass.
  virtual void empty(const Lease& lease) = 0;
  // Ends the lease of revoked memory. As long as a device still holds the memory, it may write to
  // it, so it is not allocated again until then.
  virtual void give_back(const Lease& lease) = 0;
  // The most entries that `quarantined` writes.
  static constexpr size_t most_quarantined = 256;
  // Lists the memory in the medium, of any owner, that is revoked and held. Returns how many
  // entries it wrote.
  virtual size_t quarantined(std::span<Quarantined> out) = 0;
  // Sets the judge of wrong tokens. It must live until no pass uses the port any longer. With null,
  // all requests are answered.
  virtual void set_judge(TokenJudge* judge) = 0;
};

// The memory from which a device sends by reading it itself, as a NIC does by DMA. Data that lies
// elsewhere is copied. Functions that are marked "not in a pass" may take long; any thread may call
// them, and the port may be run meanwhile. The others are called by the thread that runs the port.
class DeviceReads {
 public:
  virtual ~DeviceReads() = default;

  // Makes the memory readable for the device, which does not read it yet. Returns false if the
  // device cannot reach it, or has no room for it. Not to be called in a pass.
  virtual bool map(std::span<const std::byte> memory) = 0;
  // Lets the device read mapped memory: `send` need no longer copy data that lies there.
  virtual void grant(std::span<const std::byte> memory) = 0;
  // Stops the device from reading this memory for frames that are sent from now on. For earlier
  // ones it may read the memory until they settle. Does nothing for memory that is not granted.
  virtual void revoke(std::span<const std::byte> memory) = 0;
  // Undoes `map`, after `revoke`, and once the frames that were sent before it have settled. Not to
  // be called in a pass.
  virtual void unmap(std::span<const std::byte> memory) = 0;
};

class PacketPort;

// A port that consists of several ports, which can be added and removed while it is open. The
// thread that runs the port calls all functions except `prepare`.
class PathPorts {
 public:
  virtual ~PathPorts() = default;

  // A port that is open, and can be added.
  class Joining {
   public:
    virtual ~Joining() = default;
    virtual const Endpoint& self() const = 0;
  };
  // Opens a port. Any thread may call it, but not in a pass, because it may take long. Errors:
  // those of open.
  virtual Result<std::unique_ptr<Joining>> prepare(std::string_view device) = 0;
  // Adds the port as path `number`, which must be unused.
  virtual void join(uint8_t number, Joining& joining) = 0;
  // Stops receiving from this path.
  virtual void stop(uint8_t number) = 0;
  // Removes the port and returns it, after `stop`, and once all frames that it was given have
  // settled.
  virtual std::unique_ptr<PacketPort> part(uint8_t number) = 0;
};

// A port that carries packets, in bursts. Each frame is in one of these states: free, lent to the
// engine, in the device, received. Used by one thread at a time; no function blocks, and none
// allocates after open.
class PacketPort {
 public:
  virtual ~PacketPort() = default;

  virtual const PortFacts& facts() const = 0;
  virtual PortCounters counters() const = 0;
  // Writes the values of `facts().metrics`, in their order, to the front of `out`, and returns how
  // many. They may be those of a moment ago. Called a few times in a second.
  static constexpr size_t most_metrics = 64;
  virtual size_t metrics(std::span<uint64_t> /*out*/) { return 0; }

  // Lends empty frames: writes them to the front of `frames`, and returns how many.
  virtual size_t lend(std::span<TxFrame*> frames) = 0;
  // Takes filled frames, in order, and returns how many of them it took; the others stay lent. The
  // port may read the memory that a frame's pieces name until `settled` has counted the frame, and
  // never after that. A frame that was taken may be lost in the medium.
  virtual size_t send(std::span<TxFrame* const> frames, Time now) = 0;
  // Gives lent frames back unsent.
  virtual void unlend(std::span<TxFrame* const> frames) = 0;
  // Returns the number of frames, of those that `send` has taken since open, that the port will not
  // read again, counted in the order in which `send` took them. It never decreases, and reaches all
  // frames even if nothing more is sent. It may lag behind the packets that were sent, and even
  // behind those that peers have answered. A port may advance it only in `send` and `receive`, and
  // does not wake a thread for it: callers that wait for it poll it. A port that is destroyed reads
  // nothing any longer, whether or not frames had settled.
  virtual uint64_t settled() = 0;

  // Writes received frames to `frames`, and returns how many. Each must be released.
  virtual size_t receive(std::span<RxFrame> frames, Time now) = 0;
  virtual void release(std::span<const RxFrame> frames) = 0;

  // Returns descriptors, of which at least one becomes readable when frames may have arrived; the
  // next call of `receive` may nevertheless return none. They are constant after open, and at most
  // `most_descriptors`. The span is empty if the medium has none.
  static constexpr size_t most_descriptors = 4 * most_paths;
  virtual std::span<const int> descriptors() const = 0;
  // For a port with `facts().arms`; other ports do nothing. From `arm` to `disarm`, a descriptor
  // becomes readable when a frame arrives. Frames that arrived before `arm` may give no signal. So
  // a thread arms the port, then calls `receive`, and then sleeps at the descriptors if nothing was
  // received and `next_arrival` is not due; when it wakes, it disarms the port. Either call may be
  // repeated.
  virtual void arm() {}
  virtual void disarm() {}
  // Returns the bell at which the thread that runs this port sleeps, and which senders ring; null
  // if it sleeps at the descriptors.
  virtual Bell* bell() { return nullptr; }
  // Returns the ways to the peers of a lossless medium, on which frames are sent only if there is
  // room for them; null if the medium is not lossless.
  virtual Ways* ways() { return nullptr; }
  // Returns the memory of the medium for segments, or null if it has none.
  virtual SegmentMemory* memory() { return nullptr; }
  // Returns the interface that lets the device read memory, or null if it reads only memory of its
  // own, or any.
  virtual DeviceReads* device_reads() { return nullptr; }
  // Returns the interface that adds and removes ports, or null if this port does not consist of
  // several.
  virtual PathPorts* path_ports() { return nullptr; }
  // Returns the time at which `receive` must be called even if nothing arrives, because a delayed
  // frame or the gathered data of a wrapper is due then. Returns `never` if there is none.
  virtual Time next_arrival() const { return never; }
  // Returns the clock of a simulated medium, or null for other media.
  virtual VirtualClock* clock() { return nullptr; }
  // Ends as if its process had been killed: notifies no peer, leaves what the system would leave,
  // and does not release received frames. Only destruction may follow. For simulations; a port that
  // has no state outside of its process does nothing.
  virtual void abandon() {}
};

// A kind of port. To add one, write a folder with a `Driver`, and `urma_driver(<name>)` in CMake.
struct Driver {
  std::string_view name;
  std::string_view summary;
  // Pairs of device strings whose devices reach each other, for the conformance suite.
  using Pair = std::array<std::string_view, 2>;
  std::span<const Pair> pairs;
  Result<std::unique_ptr<PacketPort>> (*open)(const DeviceString& device);
  // One way to write the driver's device strings (FormInfo). `options` asks the reader for each
  // option of the form, as `open` does.
  struct Form {
    std::string_view text;
    std::string_view meaning;
    std::string_view example;
    void (*options)(OptionReader& reader);
    bool wraps = false;
    bool addressed = false;  // a wrapper with an address in its parentheses
  };
  std::span<const Form> forms = {};
};

// Returns all drivers in this build.
std::span<const Driver* const> all_drivers();
// Returns the descriptions of all drivers, for list_drivers. Opens no port.
std::vector<DriverInfo> describe_drivers();
// Opens the port of a parsed device string, wrappers included. Errors: those of urma::open.
Result<std::unique_ptr<PacketPort>> open_port(const DeviceString& device);

}  // namespace urma::drivers
