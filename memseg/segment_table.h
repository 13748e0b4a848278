// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/guarded_copy.h"
#include "base/region.h"
#include "base/slab.h"
#include "memseg/token_mint.h"
#include "urma/core/work.h"

namespace urma::memseg {

// Returns whether [address, address + bytes) lies in [base, base + size), without overflow.
constexpr bool within(uint64_t base, uint64_t size, uint64_t address, uint64_t bytes) {
  return address >= base && bytes <= size && address - base <= size - bytes;
}

// The registered segments of one device, and the only check of a peer's access by packets. It knows
// nothing of packets or works. Only the thread that runs the engine calls it.
//
// A TokenID names one segment, or several which share its TokenValues and can be withdrawn
// together. They are kept in a tree by address, mostly of a single node. Up to two TokenValues are
// valid at once (UB 9).
class SegmentTable {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // `capacity` is at most 2^20 (UB 9: TokenIDs have 20 bits).
  SegmentTable(uint32_t capacity, SipHash key);

  struct Segment {
    std::byte* base = nullptr;
    uint64_t bytes = 0;
    Rights rights = Rights::local_only;
    uint64_t address = reinterpret_cast<uint64_t>(base);  // of the first byte, as peers name it
    AtomicDomain atomics = AtomicDomain::processor;
    bool guarded = false;   // its memory may be unmapped: only `guard()` copies it
    uint32_t lease = none;  // its number in the medium, if it has one
  };
  struct Token {
    TokenId id{};
    TokenValue value{};
    TokenValue older{};  // equal to `value` while only one is valid
    bool checked = true;
    bool chosen = false;  // by the owner, not drawn
  };
  struct Made {
    Handle segment;
    Token token;
  };
  enum class Added : uint8_t {
    added,
    full,
    gone,      // the other segment does not exist
    overlaps,  // it overlaps a segment of this TokenID
    no_guard,  // it is guarded, but the system cannot provide a GuardedCopy
  };

  // How the token of a new TokenID comes about.
  struct TokenPlan {
    TokenPlan(TokenPolicy how = TokenPolicy::plain_text, std::optional<TokenValue> value = {})
        : policy(how), chosen(value) {}

    TokenPolicy policy;
    std::optional<TokenValue> chosen;  // by the owner. Such a token cannot be rotated
  };
  // Adds a segment with a TokenID of its own. A guarded one may be added only once `guard()` is
  // open. Neither `base` nor `address` plus `bytes` may wrap. `drawn`: the token that another table
  // with the same key has just drawn, if this table copies that one, as those of a device's engines
  // do. Such a table draws no TokenIDs, and has the same TokenValues if it makes the same changes
  // of this token.
  Added add(const Segment& segment, const TokenPlan& plan, Made& made,
            const Token* drawn = nullptr);
  // Adds a segment under the TokenID of another one.
  Added join(Handle other, const Segment& segment, Made& made);

  // Withdraws this segment, or all of its TokenID: from now on no check finds them. Returns the
  // root of a tree of the withdrawn segments, for `for_each` and then `release`, or `none` if there
  // is no such segment.
  uint32_t withdraw(Handle segment, bool all);
  // Frees a withdrawn tree that no access uses any more.
  void release(uint32_t root);
  // Withdraws and releases all segments.
  void clear();

  // Draws a second value for the TokenID, so that both are valid. Returns false if there are two
  // already, if the TokenID needs no token, or if its owner chose the first one.
  bool rotate(Handle segment);
  // Makes only the newer value valid. Returns false if there is no such segment.
  bool retire(Handle segment);
  // Returns the valid values, or an empty Token if there is no such segment.
  Token token(Handle segment);
  // Returns the root of the tree that holds this segment.
  uint32_t root(Handle segment);
  template <class Function>
  void for_each(uint32_t root, Function&& function) {
    for_each_node(root, [&](Node& node) { function(std::as_const(node.segment)); });
  }

  struct Access {
    std::byte* at = nullptr;
    bool guarded = false;  // only `guard()` may touch it
  };
  // Returns where `bytes` bytes at the owner's `address` lie. Returns null if the access is
  // refused: there is no such segment, the token is wrong, the range exceeds the segment, or the
  // segment does not grant the right. `bytes` must not be 0.
  Access access(TokenId id, TokenValue token, uint64_t address, uint64_t bytes,
                Rights wanted) const {
    if (number(id) >= id_limit) return {};
    const Name& name = names_[number(id)];
    if (!opens(name, token)) return {};
    const Segment* const segment = find(name.root(), address);
    if (segment == nullptr || !has(segment->rights, wanted)) return {};
    if (!within(segment->address, segment->bytes, address, bytes)) return {};
    return {segment->base + (address - segment->address), segment->guarded};
  }

  // Returns the segment of this TokenID that contains the address, or null.
  const Segment* segment_of(TokenId id, uint64_t address) const {
    if (number(id) >= id_limit) return nullptr;
    const Segment* const segment = find(names_[number(id)].root(), address);
    const bool inside = segment != nullptr && within(segment->address, segment->bytes, address, 1);
    return inside ? segment : nullptr;
  }

  // As `access`, returning only the address.
  std::byte* check(TokenId id, TokenValue token, uint64_t address, uint64_t bytes,
                   Rights wanted) const {
    return access(id, token, address, bytes, wanted).at;
  }

  // Copies to and from guarded segments; to be opened before one is added.
  GuardedCopy& guard() { return guard_; }
  const GuardedCopy& guard() const { return guard_; }

  // Returns whether the TokenID exists and this is a valid token for it. An access may still be
  // refused for another reason.
  bool names(TokenId id, TokenValue token) const {
    return number(id) < id_limit && opens(names_[number(id)], token);
  }
  // Returns whether this was a token of the TokenID at any time: a peer that presents it is late,
  // but did not guess.
  bool once(TokenId id, TokenValue token) const {
    return number(id) < id_limit && mint_.generation(id, token) < names_[number(id)].generation;
  }
  // Returns whether the TokenID needs no token.
  bool unchecked(TokenId id) const {
    return number(id) < id_limit && (names_[number(id)].tree & unchecked_flag) != 0;
  }

  uint32_t size() const { return nodes_.size(); }
  // Calls function(segment, its TokenID) for the segments in the first `end` places of the table,
  // for statistics.
  template <class Function>
  void for_each_below(uint32_t end, Function&& function) {
    nodes_.for_each_below(end, [&](const Node& node) {
      if (!node.withdrawn) function(node.segment, node.id);
    });
  }

 private:
  static constexpr uint32_t unchecked_flag = 1u << 31;  // in `tree`: it needs no token
  static constexpr uint32_t chosen_flag = 1u << 30;     // in `tree`: its owner chose the token
  static constexpr uint32_t flags = unchecked_flag | chosen_flag;

  // The state of one TokenID. Its generation is kept when it is free.
  struct Name {
    TokenValue values[2];  // the newer one first
    uint32_t generation;   // how many values it has had
    uint32_t tree;         // root of its tree + 1; 0 if it is free

    uint32_t root() const { return (tree & ~flags) - 1; }
    void set_root(uint32_t root) { tree = (tree & flags) | (root + 1); }
  };
  static_assert(sizeof(Name) == 16);

  struct alignas(64) Node {
    Segment segment;
    TokenId id{};
    uint32_t left = none;
    uint32_t right = none;
    bool withdrawn = false;
  };
  static_assert(sizeof(Node) == 64);

  // Both values are compared in full, also for a TokenID that does not exist, so that the time
  // taken reveals nothing.
  static bool opens(const Name& name, TokenValue token) {
    const uint32_t newer = number(name.values[0]) ^ number(token);
    const uint32_t older = number(name.values[1]) ^ number(token);
    const uint32_t known = static_cast<uint32_t>(newer == 0) | static_cast<uint32_t>(older == 0);
    const uint32_t unchecked = name.tree / unchecked_flag;
    return ((known | unchecked) & static_cast<uint32_t>(name.tree != 0)) != 0;
  }
  // Finds the last segment that begins at or before `address`: no other can contain it.
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
  // Free TokenIDs, oldest first: one is used again when all others have been.
  RegionArray<uint32_t> freed_{id_limit};
  uint32_t freed_head_ = 0;
  uint32_t freed_count_ = 0;
  uint32_t drawn_ = 0;   // TokenIDs that have ever been used
  bool copies_ = false;  // another table draws the TokenIDs
  Slab<Node> nodes_;
};

}  // namespace urma::memseg
