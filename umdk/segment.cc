// SPDX-License-Identifier: Apache-2.0
#include "umdk/segment.h"

#include "umdk/log.h"
#include "umdk/moved_memory.h"
#include "umdk/pool.h"

namespace urma::umdk {
namespace {

// A segment in a window has an address that consists of a number and, for its offsets, of 46 bits.
// The owner tells the number in the unused bits of the attributes, plus 1, because programs pass
// on the whole urma_seg_t. The unused bits of the TokenID repeat a part of it: a program may leave
// the attributes of a urma_seg_t that it makes itself uninitialised.
constexpr unsigned offset_bits = 46;
constexpr uint64_t in_a_window = uint64_t{1} << 63;
constexpr uint32_t repeated = 0x80;

uint32_t token_id_with(uint32_t token_id, uint32_t number) {
  return token_id | repeated | (number & (repeated - 1));
}

void tell_window(const RemoteSegment& in_window, urma_seg_t& seg) {
  const uint64_t number = (in_window.address & ~in_a_window) >> offset_bits;
  const bool usual = in_window.address == (in_a_window | number << offset_bits);
  seg.attr.bs.reserved = (number + 1) & 0x1ffff;
  if (!usual || seg.attr.bs.reserved != number + 1) {
    seg.attr.bs.reserved = 0;  // peers send packets
    return;
  }
  seg.token_id = token_id_with(seg.token_id, seg.attr.bs.reserved);
}

// Returns the address by which peers name the segment.
uint64_t address_of(const urma_seg_t& seg) {
  const uint32_t number = seg.attr.bs.reserved;
  const uint32_t token_id = seg.token_id >> token_id_shift << token_id_shift;
  if (number == 0 || seg.token_id != token_id_with(token_id, number)) return seg.ubva.va;
  return in_a_window | uint64_t{number - 1} << offset_bits;
}

// Allocates pages of the context's window for memory that is about to be registered, if the program
// wants it to be moved there and it can be.
std::optional<Segment> pages_for(Context& context, std::span<std::byte> memory,
                                 const SegmentOptions& options) {
  if (!MovedMemory::is_wanted() || options.with != nullptr ||
      options.rights == Rights::local_only) {
    return std::nullopt;
  }
  const char* why = MovedMemory::get().obstacle(memory);
  if (why == nullptr) {
    auto made = context.device.allocate(memory.size(), options);
    if (made && made->mapped()) return std::move(*made);
    why = "the device has no window, or no room there";
  }
  log(URMA_VLOG_LEVEL_INFO, "urma_register_seg", "the memory at %p is not moved into a window: %s",
      static_cast<void*>(memory.data()), why);
  return std::nullopt;
}

urma_seg_t described(const Context& context, const urma_seg_cfg_t& cfg) {
  urma_seg_t seg{};
  seg.ubva = {context.eid, context.uasid, cfg.va};
  seg.len = cfg.len;
  seg.attr.bs.token_policy = cfg.flag.bs.token_policy & 7;
  seg.attr.bs.cacheable = cfg.flag.bs.cacheable & 1;
  seg.attr.bs.access = cfg.flag.bs.access & 0x3f;
  seg.attr.bs.non_pin = cfg.flag.bs.non_pin & 1;
  seg.attr.bs.user_token_id = cfg.flag.bs.token_id_valid & 1;
  return seg;
}

}  // namespace

Rights rights_of(uint32_t access) {
  Rights rights = Rights::local_only;
  if ((access & URMA_ACCESS_READ) != 0) rights = rights | Rights::read;
  if ((access & URMA_ACCESS_WRITE) != 0) rights = rights | Rights::write;
  if ((access & URMA_ACCESS_ATOMIC) != 0) rights = rights | Rights::atomic;
  return rights;
}

Token::Token(Context& context, urma_token_id_flag_t how) : urma_token_id_t{} {
  urma_ctx = &context;
  token_id = URMA_SEG_TOKEN_ID_INVALID;
  ref.atomic_cnt = 1;
  flag = how;
  context.hold();
}

Token::~Token() { context().let_go(); }

TargetSegment::TargetSegment(Context& context, const urma_seg_t& what) : urma_target_seg_t{} {
  seg = what;
  urma_ctx = &context;
  context.hold();
}

TargetSegment::~TargetSegment() { context().let_go(); }

namespace {

bool is_local(uint32_t access) { return rights_of(access) == Rights::local_only; }

// Returns the segment whose TokenID in the library a new one shares, or null if it gets another.
// Those that no peer may access come last: the library ties their TokenID to the token that they
// were registered with, which peers need not show.
const Segment* beside(const Token& token, const urma_seg_cfg_t& cfg) {
  for (const TargetSegment* const one : token.segments) {
    if (!is_local(one->seg.attr.bs.access)) return &*one->own;
  }
  if (token.segments.empty() || !is_local(cfg.flag.bs.access)) return nullptr;
  return &*token.segments.front()->own;
}

// Returns whether the segments of a TokenID can have this one among them: peers show one token for
// all of them, except for those that no peer may access.
bool fits(const Token& token, const urma_seg_cfg_t& cfg) {
  if (is_local(cfg.flag.bs.access) || beside(token, cfg) == nullptr) return true;
  const uint32_t policy = cfg.flag.bs.token_policy;
  return policy == token.policy &&
         (policy == URMA_TOKEN_NONE || cfg.token_value.token == token.value);
}

}  // namespace

Result<TargetSegment*> register_segment(Context& context, const urma_seg_cfg_t& cfg) {
  Pool<Token>::Owner implied;  // ends after `held`
  if (cfg.flag.bs.token_id_valid == 0) {
    implied.reset(Pool<Token>::make(context, urma_token_id_flag_t{}));
  }
  Token* const token = implied ? implied.get() : static_cast<Token*>(cfg.token_id);
  const std::lock_guard held(token->mutex);
  if (!fits(*token, cfg)) {
    return Error{Status::invalid_argument,
                 "the TokenID has a segment with another token_value or token_policy. Fix: choose "
                 "the same for all segments of a TokenID, or make another TokenID"};
  }
  SegmentOptions options{.rights = rights_of(cfg.flag.bs.access), .with = beside(*token, cfg)};
  const bool settles = options.with == nullptr;  // otherwise the token is that of `with`
  if (settles && cfg.flag.bs.token_policy == URMA_TOKEN_NONE) {
    options.policy = TokenPolicy::none;
  } else if (settles) {
    options.token = TokenValue(cfg.token_value.token);
  }
  const std::span memory(reinterpret_cast<std::byte*>(cfg.va), cfg.len);
  const bool writable = is_writable(memory);
  if (!writable && (cfg.flag.bs.access & URMA_ACCESS_WRITE) != 0) {
    return Error{Status::invalid_argument,
                 "peers may write the memory, but this process may not: it is mapped read-only, or "
                 "not mapped. Fix: map all of it with PROT_WRITE, or leave URMA_ACCESS_WRITE out"};
  }
  std::optional<Segment> window = pages_for(context, memory, options);
  if (window) options = {.rights = options.rights, .with = &*window};
  auto made = context.device.register_memory(memory, options);
  if (!made) return made.error();
  Pool<TargetSegment>::Owner segment(Pool<TargetSegment>::make(context, described(context, cfg)));
  if (token->segments.size() == token->segments.capacity()) {
    token->segments.reserve(2 * token->segments.size() + 1);
  }
  if (MovedMemory::is_wanted()) MovedMemory::get().note(memory);
  segment->remote = made->local();
  segment->peer.set(segment->remote.peer);
  segment->writable = writable;
  segment->own.emplace(std::move(*made));
  if (window && MovedMemory::get().move_in(memory, window->bytes().data())) {
    segment->remote = window->local();
    segment->window = std::move(window);
  }
  segment->user_ctx = cfg.user_ctx;
  segment->mva = cfg.va;
  segment->token_id = token;
  if (settles) {
    token->policy = cfg.flag.bs.token_policy;
    token->value = cfg.token_value.token;
  }
  token->segments.push_back(segment.get());
  token->ref.atomic_cnt.fetch_add(1);
  token->token_id = number(segment->remote.token_id) << token_id_shift;
  segment->seg.token_id = token->token_id;
  if (segment->window) tell_window(segment->remote, segment->seg);
  implied.release();
  return segment.release();
}

namespace {

// Ends the accesses of peers to pages in the window, and gives the program private ones. If that is
// not possible now, the context keeps the pages, which then belong to this program alone.
Result<void> move_back(TargetSegment& segment) {
  if (MovedMemory::is_wanted()) MovedMemory::get().forget(segment.own->bytes());
  if (!segment.window) return {};
  if (auto ended = segment.window->unregister(); !ended) return ended;
  std::byte* const pages = segment.window->bytes().data();
  if (MovedMemory::get().move_out(pages)) return {};
  // The library has replaced its own mapping if a peer was stopped in the middle of a copy.
  if (const auto shown = mapped_at(reinterpret_cast<uintptr_t>(pages)); shown && shown->is_shared) {
    segment.context().keep(std::move(*segment.window));
    return {};
  }
  return Error{Status::not_fenced,
               "a process that is stopped was in the middle of a copy, and the memory cannot be "
               "replaced while the program has other threads. Fix: let that process continue, or "
               "end it, and call this again"};
}

}  // namespace

Result<void> unregister_segment(TargetSegment& segment) {
  auto* const token = static_cast<Token*>(segment.token_id);
  const bool implied = segment.seg.attr.bs.user_token_id == 0;
  {
    const std::lock_guard held(token->mutex);
    if (auto ended = segment.own->unregister(); !ended) return ended;
    if (auto ended = move_back(segment); !ended) return ended;
    std::erase(token->segments, &segment);
    token->ref.atomic_cnt.fetch_sub(1);
  }
  Pool<TargetSegment>::destroy(&segment);
  // A program may try to free this TokenID, too.
  if (Claim<Token> claim(implied ? token : nullptr); claim.object() != nullptr) {
    Pool<Token>::destroy(token);
    claim.drop();
  }
  return {};
}

Result<TargetSegment*> import_segment(Context& context, const urma_seg_t& described_,
                                      uint32_t token) {
  const uint32_t as_of = context.losses();
  const Place place{described_.ubva.eid, described_.ubva.uasid};
  auto peer = context.peer_at(place);
  if (!peer) return peer.error();
  auto* const segment = Pool<TargetSegment>::make(context, described_);
  segment->peer.set(place, *peer, as_of);
  segment->remote = {.peer = *peer,
                     .address = address_of(described_),
                     .bytes = described_.len,
                     .token_id = TokenId(described_.token_id >> token_id_shift),
                     .token = TokenValue(token),
                     .rights = Rights::read | Rights::write | Rights::atomic,  // its owner knows
                     .atomics = AtomicDomain::processor};
  return segment;
}

}  // namespace urma::umdk
