#pragma once

#include "base/guarded_copy.h"
#include "base/region.h"
#include "base/slab.h"
#include "memseg/token_mint.h"
#include "urma/core/work.h"

namespace urma::memseg {

// Whether [address, address + bytes) lies in [base, base + size), without overflow.
constexpr bool within(uint64_t base, uint64_t size, uint64_t address, uint64_t bytes) {
  return address >= base && bytes <= size && address - base <= size - bytes;
}

// The segments of one device. Engine thread only.
//
// A TokenID names one segment or several, which share its TokenValues and go together: they lie in
// a tree by their addresses, of one node as a rule. Up to two values are valid at once (UB 9).
class SegmentTable {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // At most 2^20 segments at a time (UB 9: TokenIDs have 20 bits).
  SegmentTable(uint32_t capacity, SipHash key);

  struct Segment {
    std::byte* base;
    uint64_t bytes;
    Rights rights;
    uint64_t address = reinterpret_cast<uint64_t>(base);  // by which others know its first byte
    AtomicDomain atomics = AtomicDomain::processor;
    bool guarded = false;   // may not be there: copied by `guard()` alone
    uint32_t lease = none;  // the medium's number of it, where it has one
  };
  struct Token {
    TokenId id{};
    TokenValue value{};
    TokenValue older{};  // the same while only one is valid
    bool checked = true;
  };
  struct Made {
    Handle segment;
    Token token;
  };
  enum class Added : uint8_t {
    added,
    full,
    gone,      // there is no such segment to share a TokenID with
    overlaps,  // another one of this TokenID
    no_guard,  // it is guarded, and the system gives nothing to copy it with
  };

  // Under a TokenID of its own. Guarded ones only once `guard()` is open. `base` and `address` plus
  // `bytes` must not wrap.
  Added add(const Segment& segment, TokenPolicy policy, Made& made);
  // Under the TokenID of another one.
  Added join(Handle other, const Segment& segment, Made& made);

  // No check finds it any more: this one, or all of its TokenID. Gives back the root of a tree of
  // what was withdrawn, for `for_each` and then `release`; `none` when it was not there.
  uint32_t withdraw(Handle segment, bool all);
  // Withdrawn, and nobody's any more.
  void release(uint32_t root);
  // Withdraws and releases all.
  void clear();

  // A second value for the TokenID: both are valid. False: there are two, or nothing is compared.
  bool rotate(Handle segment);
  // Only the newer one is valid from now on. False: there is no such segment.
  bool retire(Handle segment);
  // What is valid. Nothing is said of a segment that is gone.
  Token token(Handle segment);
  // One of a tree: that of a segment that is there, or of what was withdrawn.
  uint32_t root(Handle segment);
  template <class Function>
  void for_each(uint32_t root, Function&& function) {
    for_each_node(root, [&](Node& node) { function(std::as_const(node.segment)); });
  }

  struct Access {
    std::byte* at = nullptr;
    bool guarded = false;  // only `guard()` may touch it
  };
  // Where `bytes` bytes at the owner's `address` lie, or null when the access is refused: no such
  // segment, another token, a range that leaves the segment, a right that it does not grant.
  // Not for zero bytes.
  Access access(TokenId id, TokenValue token, uint64_t address, uint64_t bytes,
                Rights wanted) const {
    if (number(id) >= id_limit) return {};
    const Name& name = names_[number(id)];
    if (!opens(name, token)) return {};
    const Segment* const segment = find(root_of(name), address);
    if (segment == nullptr || !has(segment->rights, wanted)) return {};
    if (!within(segment->address, segment->bytes, address, bytes)) return {};
    return {segment->base + (address - segment->address), segment->guarded};
  }

  // Whether it is not refused: where it lies.
  std::byte* check(TokenId id, TokenValue token, uint64_t address, uint64_t bytes,
                   Rights wanted) const {
    return access(id, token, address, bytes, wanted).at;
  }

  // What touches guarded segments; to be opened before there is one.
  GuardedCopy& guard() { return guard_; }
  const GuardedCopy& guard() const { return guard_; }

  // Whether there is such a TokenID and this is a token for it, whatever else was refused.
  bool names(TokenId id, TokenValue token) const {
    return number(id) < id_limit && opens(names_[number(id)], token);
  }
  // Whether it has ever been a token for it: who shows it did not guess, but is late.
  bool once(TokenId id, TokenValue token) const {
    return number(id) < id_limit && mint_.generation(id, token) < names_[number(id)].generation;
  }
  // Whether it needs no token.
  bool unchecked(TokenId id) const {
    return number(id) < id_limit && (names_[number(id)].tree & unchecked_flag) != 0;
  }

  uint32_t size() const { return nodes_.size(); }

 private:
  // Of each TokenID; its generation stays when it is free.
  struct Name {
    TokenValue values[2];  // the newer one first
    uint32_t generation;   // values that it has had
    uint32_t tree;         // its root and one; zero: it is free
  };
  static_assert(sizeof(Name) == 16);
  static constexpr uint32_t unchecked_flag = 1u << 31;  // in `tree`: it needs no token
  static uint32_t root_of(const Name& name) { return (name.tree & ~unchecked_flag) - 1; }

  struct alignas(64) Node {
    Segment segment;
    TokenId id{};
    uint32_t left = none;
    uint32_t right = none;
    bool withdrawn = false;
  };
  static_assert(sizeof(Node) == 64);

  // Both values are compared whole, and so is one that nothing has: the time says nothing.
  static bool opens(const Name& name, TokenValue token) {
    const uint32_t newer = number(name.values[0]) ^ number(token);
    const uint32_t older = number(name.values[1]) ^ number(token);
    const uint32_t known = static_cast<uint32_t>(newer == 0) | static_cast<uint32_t>(older == 0);
    const uint32_t unchecked = name.tree / unchecked_flag;
    return ((known | unchecked) & static_cast<uint32_t>(name.tree != 0)) != 0;
  }
  // The last one that begins at or before `address`: no other can have it.
  const Segment* find(uint32_t root, uint64_t address) const {
    const Segment* last = nullptr;
    while (root != none) {
      const Node& node = nodes_.at(root);
      const bool before = node.segment.address <= address;
      if (before) last = &node.segment;
      root = before ? node.right : node.left;
    }
    return last;
  }

  TokenId take_id();
  void free_id(TokenId id);
  void draw_value(TokenId id);
  Node* live(Handle segment);
  Made made(const Node& node);
  static void set_root(Name& name, uint32_t root) {
    name.tree = (name.tree & unchecked_flag) | (root + 1);
  }
  template <class Function>
  void for_each_node(uint32_t root, Function&& function) {
    if (root == none) return;
    Node& node = nodes_.at(root);
    for_each_node(node.left, function);
    function(node);
    for_each_node(node.right, function);
  }
  bool overlaps(uint32_t root, const Segment& segment) const;
  static uint32_t rank(uint32_t node) { return node * 0x9e37'79b1u; }
  uint32_t merge(uint32_t low, uint32_t high);
  struct Halves {
    uint32_t low;
    uint32_t high;
  };
  Halves split(uint32_t root, uint64_t address);

  const TokenMint mint_;
  GuardedCopy guard_;
  RegionArray<Name> names_{id_limit};
  // Free TokenIDs, oldest first: an identifier rests until all others have been used.
  RegionArray<uint32_t> freed_{id_limit};
  uint32_t freed_head_ = 0;
  uint32_t freed_count_ = 0;
  uint32_t drawn_ = 0;  // TokenIDs that have ever been used
  Slab<Node> nodes_;
};

}  // namespace urma::memseg
