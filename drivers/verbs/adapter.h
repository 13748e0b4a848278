// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "drivers/verbs/gid.h"
#include "drivers/verbs/handles.h"

namespace urma::drivers::verbs {

// An RDMA adapter that is open, one of its ports, and the address there. The driver's objects are
// made with it, and destroyed before it.
class Adapter {
 public:
  struct Facts {
    std::string name;  // as `ibv_devices` lists it
    uint8_t port = 1;
    Gid gid = {};
    uint32_t mtu = 0;                    // the most bytes of a datagram
    unsigned most_pieces = 1;            // the most pieces of memory that one datagram is made of
    uint64_t line_bytes_per_second = 0;  // the rate of the link; 0 if it is not known
    uint16_t lid = 0;                    // the port's address within InfiniBand
    // Reads that a reliable queue pair sends at once, and that it answers at once.
    uint8_t reads_out = 0;
    uint8_t reads_in = 0;
    bool active = false;    // whether the link was up at open
    bool software = false;  // whether it is rxe, which the kernel runs on any network interface
  };

  // Errors: those of urma::open.
  static Result<Adapter> open(const Settings& settings);

  const Facts& facts() const { return facts_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  // Returns "rxe0, port 1", for messages.
  std::string place() const { return facts_.name + ", port " + std::to_string(facts_.port); }

  // Lets the adapter access memory, which the system then keeps in place. `access` is as
  // libibverbs takes it; 0: the adapter only reads. Returns null, with errno, if it refuses.
  Memory register_memory(std::span<const std::byte> memory, int access) const;
  // Adds what follows from this port and the GID to the attributes of a way there. They have the
  // addresses of InfiniBand's own, and the flow label.
  ibv_ah_attr way_to(const Eid& gid, ibv_ah_attr attributes) const;
  // Returns a handle for datagrams to this GID, or null, with errno. `attributes`: as `way_to`.
  AddressHandle make_handle(const Eid& gid, ibv_ah_attr attributes) const;
  // Explains why so much memory of the driver could not be registered. `why` is the errno.
  Error cannot_register(size_t bytes, int why) const;

 private:
  Adapter(Context context, Domain domain, Facts facts)
      : context_(std::move(context)), domain_(std::move(domain)), facts_(std::move(facts)) {}

  Context context_;
  Domain domain_;
  Facts facts_;
};

}  // namespace urma::drivers::verbs
