// SPDX-License-Identifier: Apache-2.0
#include "memseg/segment_table.h"

#include <algorithm>

#include "base/assert.h"

namespace urma::memseg {

SegmentTable::SegmentTable(uint32_t capacity, SipHash key)
    : mint_(key), nodes_(std::min(capacity, id_limit)) {}

// ---- TokenIDs

// TokenIDs that were never used come first, so that a freed one rests as long as possible.
TokenId SegmentTable::take_id() {
  if (drawn_ < id_limit) return mint_.id(drawn_++);
  URMA_ASSERT(freed_count_ > 0, "there are as many identifiers as segments");
  const uint32_t id = freed_[freed_head_];
  freed_head_ = (freed_head_ + 1) % id_limit;
  --freed_count_;
  return TokenId(id);
}

void SegmentTable::free_id(TokenId id) {
  names_[number(id)].tree = 0;
  if (copies_) return;
  freed_[(freed_head_ + freed_count_) % id_limit] = number(id);
  ++freed_count_;
}

// Draws a new value for the TokenID. The former newer one becomes the older one.
void SegmentTable::draw_value(TokenId id) {
  Name& name = names_[number(id)];
  name.values[1] = name.values[0];
  name.values[0] = mint_.value(id, name.generation++);
}

// ---- segments

SegmentTable::Node* SegmentTable::live(Handle segment) {
  Node* const node = nodes_.find(segment);
  return node == nullptr || node->withdrawn ? nullptr : node;
}

SegmentTable::Made SegmentTable::made(const Node& node) {
  const Handle handle = nodes_.handle_of(&node);
  return {handle, token(handle)};
}

SegmentTable::Added SegmentTable::add(const Segment& segment, const TokenPlan& plan, Made& out,
                                      const Token* drawn) {
  Node* const node = nodes_.create(Node{.segment = segment});
  if (node == nullptr) return Added::full;
  copies_ = drawn != nullptr;
  node->id = copies_ ? drawn->id : take_id();
  Name& name = names_[number(node->id)];
  URMA_ASSERT(name.tree == 0, "a TokenID is drawn again when all tables have freed it");
  if (plan.chosen) {
    name.values[0] = *plan.chosen;
  } else {
    if (copies_) name.generation = mint_.generation(drawn->id, drawn->value);
    draw_value(node->id);
  }
  name.values[1] = name.values[0];
  name.tree = (nodes_.index_of(node) + 1) | (plan.chosen ? chosen_flag : 0) |
              (plan.policy == TokenPolicy::none ? unchecked_flag : 0);
  out = made(*node);
  URMA_ASSERT(!copies_ || out.token.value == drawn->value, "one key draws the same values");
  return Added::added;
}

SegmentTable::Added SegmentTable::join(Handle other, const Segment& segment, Made& out) {
  const Node* const beside = live(other);
  if (beside == nullptr) return Added::gone;
  const TokenId id = beside->id;
  Name& name = names_[number(id)];
  if (overlaps(name.root(), segment)) return Added::overlaps;
  Node* const node = nodes_.create(Node{.segment = segment, .id = id});
  if (node == nullptr) return Added::full;
  const Halves halves = split(name.root(), segment.address);
  name.set_root(merge(merge(halves.low, nodes_.index_of(node)), halves.high));
  out = made(*node);
  return Added::added;
}

uint32_t SegmentTable::withdraw(Handle segment, bool all) {
  Node* const node = live(segment);
  if (node == nullptr) return none;
  const TokenId id = node->id;
  Name& name = names_[number(id)];
  uint32_t withdrawn = name.root();
  uint32_t left = none;
  if (!all) {
    // Only this segment begins at its address, because segments of one TokenID do not overlap.
    const Halves low = split(withdrawn, node->segment.address);
    const Halves high = split(low.high, node->segment.address + 1);
    withdrawn = high.low;
    left = merge(low.low, high.high);
  }
  if (left == none) {
    free_id(id);
  } else {
    name.set_root(left);
  }
  for_each_node(withdrawn, [](Node& one) { one.withdrawn = true; });
  return withdrawn;
}

void SegmentTable::release(uint32_t root) {
  if (root == none) return;
  Node& node = nodes_.at(root);
  URMA_ASSERT(node.withdrawn, "what is released was withdrawn");
  const uint32_t left = node.left;
  const uint32_t right = node.right;
  nodes_.destroy(&node);
  release(left);
  release(right);
}

void SegmentTable::clear() {
  nodes_.for_each([&](Node& node) {
    if (!node.withdrawn) release(withdraw(nodes_.handle_of(&node), true));
  });
}

// ---- their tokens

bool SegmentTable::rotate(Handle segment) {
  const Node* const node = live(segment);
  if (node == nullptr) return false;
  const Name& name = names_[number(node->id)];
  if ((name.tree & flags) != 0 || name.values[0] != name.values[1]) return false;
  draw_value(node->id);
  return true;
}

bool SegmentTable::retire(Handle segment) {
  const Node* const node = live(segment);
  if (node == nullptr) return false;
  Name& name = names_[number(node->id)];
  name.values[1] = name.values[0];
  return true;
}

SegmentTable::Token SegmentTable::token(Handle segment) {
  const Node* const node = live(segment);
  if (node == nullptr) return {};
  const Name& name = names_[number(node->id)];
  return {.id = node->id,
          .value = name.values[0],
          .older = name.values[1],
          .checked = (name.tree & unchecked_flag) == 0,
          .chosen = (name.tree & chosen_flag) != 0};
}

uint32_t SegmentTable::root(Handle segment) {
  const Node* const node = live(segment);
  return node == nullptr ? none : names_[number(node->id)].root();
}

// ---- the tree of a TokenID: a treap, in which the rank of a node is a hash of its index

bool SegmentTable::overlaps(uint32_t root, const Segment& segment) const {
  // The segments of a TokenID do not overlap each other: among those that begin before the end of
  // this one, the last one also ends last.
  const Segment* const last = find(root, segment.address + (segment.bytes - 1));
  return last != nullptr && last->address + (last->bytes - 1) >= segment.address;
}

// Each segment of `low` begins before each segment of `high`.
uint32_t SegmentTable::merge(uint32_t low, uint32_t high) {
  if (low == none) return high;
  if (high == none) return low;
  if (rank(low) > rank(high)) {
    nodes_.at(low).right = merge(nodes_.at(low).right, high);
    return low;
  }
  nodes_.at(high).left = merge(low, nodes_.at(high).left);
  return high;
}

// Separates the segments that begin before `address` from the others.
SegmentTable::Halves SegmentTable::split(uint32_t root, uint64_t address) {
  if (root == none) return {none, none};
  Node& node = nodes_.at(root);
  if (node.segment.address < address) {
    const Halves rest = split(node.right, address);
    node.right = rest.low;
    return {root, rest.high};
  }
  const Halves rest = split(node.left, address);
  node.left = rest.high;
  return {rest.low, root};
}

}  // namespace urma::memseg
