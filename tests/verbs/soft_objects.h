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
  std::deque<ibv_wc> completions;
  bool armed = false;
  size_t unacknowledged = 0;
  void add(const ibv_wc& completion);
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
    ibv_send_wr work;
    std::vector<ibv_sge> parts;
    std::vector<std::byte> copied;  // the bytes of an inline work
  };
  std::deque<Send> sends;
  size_t polls = 0;  // while works wait to be sent
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
};

struct SoftMemory : ibv_mr {
  int access = 0;
  bool covers(const ibv_sge& part, int needed) const {
    const auto begin = reinterpret_cast<uintptr_t>(addr);
    return (access & needed) == needed && part.addr >= begin && part.length <= length &&
           part.addr - begin <= length - part.length;
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
  uint16_t next_service = 40000;
  double loss = 0;
  size_t late_polls = 0;  // send_late
  bool muted = false;
  size_t failing_starts = 0;
  Prng prng{1};

  static Fabric& the();
  SoftDevice* device(const Eid& address);
  SoftPair* pair(uint32_t number);
  // Puts the pair into the error state.
  void fail(SoftPair& pair, Failure how);
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
