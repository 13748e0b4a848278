// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "urma/core/observed.h"
#include "urma/core/segment_options.h"
#include "urma/core/time.h"

namespace urma::drivers {

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

}  // namespace urma::drivers
