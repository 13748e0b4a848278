// SPDX-License-Identifier: Apache-2.0
#pragma once

// The objects behind the functions of libibverbs and librdmacm. `soft_adapters.h` is for tests.

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "tests/verbs/soft_adapters.h"
#include "urma/core/endpoint.h"

namespace urma::test::soft {

// A descriptor that is readable while something waits.
class Signals {
 public:
  Signals() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}
  Signals(const Signals&) = delete;
  ~Signals() { close(fd_); }
  int fd() const { return fd_; }
  void add() const { eventfd_write(fd_, 1); }
  void take() const {
    eventfd_t ignored = 0;
    eventfd_read(fd_, &ignored);
  }

 private:
  int fd_;
};

struct SoftDevice : ibv_device {
  AdapterFacts facts;
  bool removed = false;
  size_t locked = 0;
  uint16_t lid = 0;  // of its port; 0 on RoCE
  ibv_mtu active_mtu() const {
    return facts.mtu == 4096 ? IBV_MTU_4096 : facts.mtu == 2048 ? IBV_MTU_2048 : IBV_MTU_1024;
  }
};

struct SoftContext : ibv_context {
  Signals signals;
  std::deque<ibv_async_event> events;
  SoftDevice& adapter() const { return static_cast<SoftDevice&>(*device); }
};

struct SoftChannel : ibv_comp_channel {
  Signals signals;
  std::deque<ibv_cq*> events;
};

struct SoftQueue : ibv_cq {
  struct Entry {
    ibv_wc completion;
    uint64_t work = 0;  // the number of the work that was sent
  };
  std::deque<Entry> entries;
  bool armed = false;
  size_t unacknowledged = 0;
  void add(const Entry& entry);
};

struct SoftPair : ibv_qp {
  struct Receive {
    uint64_t id;
    ibv_sge place;
  };
  ibv_qp_cap room{};
  uint32_t key = 0;
  std::deque<Receive> receives;
  // A work that is to be sent. The adapter reads its memory when it sends it, which may be late.
  struct Send {
    uint64_t number;  // 1 for the first work of the pair
    ibv_send_wr work;
    std::vector<ibv_sge> parts;
    std::vector<std::byte> copied;  // the bytes of an inline work
  };
  std::deque<Send> sends;
  size_t polls = 0;  // while works wait to be sent
  // The numbers of the last work that was posted, and of the last whose place in the send queue is
  // free again: the program has polled its completion, or that of a later work.
  uint64_t posted = 0;
  uint64_t freed = 0;
  bool all_signalled = false;  // whether each work is to have a completion
  ibv_qp_attr attributes{};    // of an RC pair; its PSNs are those of the next packets
  // After `only_pretend`: the buffers in the order of posting, and the work that is complete.
  struct Pretended {
    std::vector<uint64_t> buffers;
    size_t next = 0;
    std::optional<uint64_t> sent;
  };
  Pretended pretended;
  SoftQueue& sent() const { return static_cast<SoftQueue&>(*send_cq); }
  SoftQueue& received() const { return static_cast<SoftQueue&>(*recv_cq); }
  SoftContext& owner() const { return static_cast<SoftContext&>(*context); }
  bool reliable() const { return qp_type == IBV_QPT_RC; }
  // Adds the completion of a work that was sent, if the work is signalled or has failed.
  void complete(const Send& send, ibv_wc_status status);
  // Sends the first of the works that wait, or flushes it if the pair has failed.
  void carry_first();
  // Removes the works that wait and the buffers, each with a completion.
  void flush();
};

// The bytes that an adapter is told to access, and the key that it is told.
struct Place {
  uint64_t address;
  size_t bytes;
  uint32_t key;
};

struct SoftMemory : ibv_mr {
  int access = 0;
  bool covers(const Place& place, int needed) const {
    const auto begin = reinterpret_cast<uintptr_t>(addr);
    return (access & needed) == needed && place.address >= begin && place.bytes <= length &&
           place.address - begin <= length - place.bytes;
  }
};

struct SoftHandle : ibv_ah {
  ibv_ah_attr attributes;
};

struct SoftEvents;
struct SoftId : rdma_cm_id {
  Endpoint own;
  Endpoint peer;
  bool listens = false;
  SoftId* asked_by = nullptr;  // for a request: whose
  SoftEvents& events() const;
};

struct SoftEvents : rdma_event_channel {
  Signals signals;
  std::deque<rdma_cm_event> events;
  void add(SoftId& id, rdma_cm_event_type type, int status = 0, const rdma_ud_param& found = {});
};
inline SoftEvents& SoftId::events() const { return static_cast<SoftEvents&>(*channel); }

Eid address_of(const ibv_gid& gid);
constexpr uint8_t most_reads = 16;  // RDMA reads in progress, at each end of an RC pair

// RC pairs; soft_reliable.cc.

// Returns whether the pair takes such a work at all.
bool takes(const SoftPair& pair, const ibv_send_wr& work);
// Remembers attributes of an RC pair. Returns false, and remembers none, if ibv_modify_qp is to
// refuse them.
bool take_attributes(SoftPair& pair, const ibv_qp_attr& to, int changed);
// Carries one RDMA write or read of a pair that has not failed.
void carry_reliable(SoftPair& pair, const SoftPair::Send& send);

// All of it. The function that uses it holds the mutex, except for `made` and `ended`.
struct Fabric {
  std::mutex mutex;
  std::list<SoftDevice> devices;
  std::vector<SoftContext*> contexts;
  std::vector<SoftPair*> pairs;
  std::vector<SoftMemory*> memories;
  std::vector<SoftId*> ids;
  size_t others = 0;  // objects that are in none of these lists
  uint32_t next_number = 17;
  uint32_t next_key = 1000;
  std::vector<uint32_t> free_keys;  // of deregistered memory, in pairs of which the first is here
  uint16_t next_service = 40000;
  uint16_t next_lid = 1;
  double loss = 0;
  size_t late_polls = 0;  // send_late
  bool muted = false;
  bool holds = false;  // hold_remote_accesses
  size_t failing_starts = 0;
  Prng prng{1};
  // The cq_context of a completion queue that has no UD pair; only_pretend needs one.
  SoftPair none{};

  static Fabric& the();
  SoftDevice* device(const Eid& address);
  SoftPair* pair(uint32_t number);
  // Returns the memory of this domain that has this key, or null if it has none or may not be
  // accessed so there. `kind` says which of its two keys that is.
  SoftMemory* memory(const ibv_pd* domain, uint32_t ibv_mr::*kind, const Place& place, int access);
  // Puts the pair into the error state. The event is what is reported.
  void fail(SoftPair& pair, Failure how, ibv_event_type event = IBV_EVENT_QP_FATAL);
  // Returns whether the adapter sends works of the pair now, as far as tests let it.
  bool carries(const SoftPair& pair) const;
  bool deliver(const Forged& datagram, uint32_t key);

  // Counts a new object that is in none of the lists, and ends one.
  template <class Object>
  Object* made(Object* object) {
    const std::lock_guard lock(mutex);
    ++others;
    return object;
  }
  template <class Object>
  int ended(Object* object) {
    const std::lock_guard lock(mutex);
    --others;
    delete object;
    return 0;
  }
};

}  // namespace urma::test::soft
