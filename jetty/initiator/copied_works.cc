// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/copied_works.h"

#include "base/probes.h"

namespace urma::jetty {

CopiedWorks::CopiedWorks(const InitiatorCommon& common, Flows& flows, OpenWorks& works,
                         Copier& copier)
    : peers_(common.peers),
      counters_(common.counters),
      flows_(flows),
      works_(works),
      copier_(copier) {}

uint32_t CopiedWorks::copy(Jetty& jetty, transport::Channel& channel, uint32_t most_bytes,
                           uint32_t& budget) {
  Flow& flow = flows_.at(jetty.first_flow);
  Jfs& jfs = jetty.queues->jfs();
  uint32_t done = 0;
  for (const uint32_t count = jfs.waiting(); done < count; ++done) {
    const uint16_t lease = jfs.next_posted();
    const uint32_t bytes = jfs.berth(lease).bytes;
    const uint32_t cost = cost_of(bytes);
    if (bytes > most_bytes || cost > budget || !copy_next(jetty, lease, flow, channel)) break;
    budget -= cost;
    jfs.take_posted();
    works_.complete_light(jetty, lease);
  }
  counters_.works += done;
  return done;
}

CopiedInPost CopiedWorks::copy(Jetty& jetty, transport::Channel& channel,
                               std::span<const Work> works, uint32_t budget) {
  Flow& flow = flows_.at(jetty.first_flow);
  Jfs& jfs = jetty.queues->jfs();
  if (jfs.waiting() > 0) return {};
  jfs.touch();
  CopiedInPost done;
  for (const Work& work : works) {
    const uint32_t cost = copy_work(jetty, work, flow, channel, budget - done.cost);
    if (cost == 0) break;
    done.cost += cost;
    ++done.works;
  }
  counters_.works += done.works;
  return done;
}

// Copies the work and completes it. Returns what it has taken from the budget, or 0 if the work
// must be posted.
uint32_t CopiedWorks::copy_work(Jetty& jetty, const Work& work, Flow& flow,
                                transport::Channel& channel, uint32_t budget) {
  Jfs& jfs = jetty.queues->jfs();
  const bool mapped = work.operation != Operation::send && work.segment.mapped();
  if (!mapped || work.with_immediate || work.with_notify || !(flow.peer == work.segment.peer) ||
      !jfs.has_berth(work)) {
    return 0;
  }
  const uint16_t lease = jfs.next_vacant();
  const Jfs::Memory memory = jfs.memory_of(work, lease);
  if (memory.bytes > slice_bytes) return 0;
  const auto bytes = static_cast<uint32_t>(memory.bytes);
  if (cost_of(bytes) > budget || jfs.examine(work, bytes, memory.staged) != Status::ok) return 0;
  const MemoryRange range{.address = work.segment.address + work.offset,
                          .bytes = bytes,
                          .id = work.segment.token_id,
                          .token = work.segment.token,
                          .wanted = right_for(work.operation)};
  Status status = Status::ok;
  uint64_t immediate = work.immediate_value;
  if (work.operation != Operation::atomic) {
    const CopiedPart part{.reads = work.operation == Operation::read,
                          .staged = memory.staged,
                          .of_bytes = bytes,
                          .pieces = jfs.pieces(memory.piece, memory.piece_count, lease),
                          .from = 0};
    if (!copier_.copy_part(part, range, flow, channel)) return 0;
  } else {
    // A failed work may have to suspend the Jetty, which only `finish` does.
    if (jetty.ordering.suspend_on_error) return 0;
    const AtomicCall call{.what = work.atomic,
                          .update = work.update,
                          .bytes = bytes,
                          .operand = work.immediate_value,
                          .expected = work.expected_value};
    const Operated end = copier_.operate(call, range, flow, channel);
    if (!end.done) return 0;
    immediate = end.fetched;
    if (work.buffer.data != nullptr)
      store_word(static_cast<std::byte*>(work.buffer.data), bytes, end.fetched);
    if (end.doubtful) [[unlikely]] {
      status = Status::unknown;
      ++counters_.unknown;
    }
  }
  probes::post(&jfs, lease, work.operation, work.tag_value, bytes, work.segment.peer);
  jfs.take_vacant();
  works_.complete_light(jetty, lease, work.signalled,
                        {.status = status,
                         .operation = work.operation,
                         .bytes = bytes,
                         .tag = work.tag_value,
                         .immediate = immediate,
                         .jetty = jetty.id,
                         .from = {}});
  return cost_of(bytes);
}

// Copies the work before anything is recorded. Returns false if the work must be recorded.
inline bool CopiedWorks::copy_next(const Jetty& jetty, uint16_t lease, Flow& flow,
                                   transport::Channel& channel) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  if (berth.verdict != Status::ok || notifies(berth) || !(flow.peer == berth.peer)) return false;
  // A failed work may have to suspend the Jetty, which only `finish` does.
  if (jetty.ordering.suspend_on_error && berth.operation == Operation::atomic) return false;
  return copier_.copy(flow, jetty.queues->jfs(), lease, 0, channel) > 0;
}

}  // namespace urma::jetty
