// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world_options.h"

#include <algorithm>
#include <sstream>

namespace urma::test {
namespace {

double sometimes(Prng& prng, double chance, double most) {
  return prng.chance(chance) ? prng.unit() * most : 0;
}

}  // namespace

WorldOptions WorldOptions::drawn(Prng& prng) {
  WorldOptions options;
  options.hosts = static_cast<uint32_t>(prng.between(2, 4));
  options.jetties = static_cast<uint32_t>(prng.between(1, 4));
  options.berths = static_cast<uint32_t>(prng.between(1, 64));
  options.receives = static_cast<uint32_t>(prng.between(1, 32));
  options.works = static_cast<uint32_t>(prng.between(100, 500));
  options.mtu = 1024u << prng.below(4);
  options.largest = prng.chance(0.3) ? 1'000'000 : prng.between(100, 100'000);
  options.hold = prng.chance(0.5) ? Duration(static_cast<int64_t>(prng.below(20'000))) : Duration{};
  options.impairment.loss = sometimes(prng, 0.6, 0.2);
  options.impairment.duplicate = sometimes(prng, 0.4, 0.2);
  options.impairment.reorder = sometimes(prng, 0.4, 0.3);
  options.impairment.corrupt = sometimes(prng, 0.3, 0.05);
  options.impairment.delay = Duration(static_cast<int64_t>(prng.below(200'000)));
  options.impairment.jitter =
      prng.chance(0.5) ? Duration(static_cast<int64_t>(prng.between(1, 100'000))) : Duration{};
  options.partition = sometimes(prng, 0.4, 0.05);
  options.restart = sometimes(prng, 0.3, 0.01);
  options.flush = sometimes(prng, 0.3, 0.02);
  options.unsignalled = sometimes(prng, 0.5, 0.8);
  options.forged = sometimes(prng, 0.5, 0.2);
  options.lazy = sometimes(prng, 0.5, 0.9);
  options.reads = prng.chance(0.7);
  options.shared = sometimes(prng, 0.5, 1);
  options.notify = sometimes(prng, 0.7, 0.5);
  options.adds = sometimes(prng, 0.5, 0.5);
  options.ordered = sometimes(prng, 0.5, 1);
  options.window = prng.chance(0.25);
  options.stop = sometimes(prng, 0.5, 0.04);
  options.leave = sometimes(prng, 0.3, 1);
  options.scarce = prng.chance(0.3);
  options.mapped = options.window && prng.chance(0.5);
  options.handed = options.mapped && prng.chance(0.5);
  options.modes = prng.chance(0.5);
  if (prng.chance(0.3)) options.idle_timeout = std::chrono::milliseconds(prng.between(1, 5));
  if (prng.chance(0.4)) {
    const auto up_to = [&](uint64_t most) {
      return Duration(static_cast<int64_t>(prng.below(most)));
    };
    options.hold_jitter = prng.chance(0.5) ? up_to(100'000) : Duration{};
    options.settle = prng.chance(0.7) ? up_to(400'000) : Duration{};
    options.settle_jitter = prng.chance(0.5) ? up_to(100'000) : Duration{};
    options.ring = prng.chance(0.3) ? prng.between(1, 64) : 0;
  }
  options.lend = sometimes(prng, 0.5, 0.3);
  return options.window ? options.in_window() : options;
}

WorldOptions WorldOptions::with_rdma(Prng& prng) const {
  WorldOptions out = *this;
  if (window || !prng.chance(0.4)) return out;
  out.rdma = prng.chance(0.7) ? 1 : 0.5;
  out.pair_fails = sometimes(prng, 0.7, 0.05);
  out.pair_late = sometimes(prng, 0.5, 0.5);
  out.stick = sometimes(prng, 0.3, 0.01);
  // A failed pair is replaced after some milliseconds.
  out.works = static_cast<uint32_t>(prng.between(300, 1500));
  out.slowness = prng.chance(0.7) ? static_cast<int64_t>(prng.between(5, 40)) : 1;
  if (prng.chance(0.7)) {
    out.reach = 256 * 1024;
    out.largest = std::min<uint64_t>(out.largest, 64 * 1024);
  }
  return out;
}

WorldOptions WorldOptions::in_window() const {
  WorldOptions out = *this;
  out.window = true;
  out.partition = 0;
  out.hold = out.hold_jitter = out.settle = out.settle_jitter = {};
  out.ring = 0;
  out.impairment = {.delay = impairment.delay, .jitter = impairment.jitter};
  return out;
}

WorldOptions WorldOptions::with_groups(Prng& prng) const {
  WorldOptions out = *this;
  out.grouped = prng.chance(0.5) ? 1 : 0.5;
  out.jetties = static_cast<uint32_t>(prng.between(1, 5));
  return out;
}

WorldOptions WorldOptions::not_coherent() const {
  WorldOptions out = in_window();
  out.mapped = out.handed = false;
  out.acted = true;
  return out;
}

WorldOptions WorldOptions::on_rings(Prng& prng) const {
  constexpr std::string_view ways_to_send[] = {"never", "always", "registered"};
  WorldOptions out = *this;
  out.rings = true;
  out.hosts = 2;
  out.window = out.mapped = out.handed = out.acted = false;
  out.gather = ways_to_send[prng.below(std::size(ways_to_send))];
  if (prng.chance(0.5)) {
    out.impairment.duplicate = out.impairment.reorder = out.impairment.corrupt = 0;
    out.hold = out.hold_jitter = out.settle = out.settle_jitter = {};
    out.ring = 0;
  }
  if (out.impairment.reorder > 0) out.modes = false;  // not all are allowed behind the wrapper
  return out;
}

std::string WorldOptions::describe() const {
  std::ostringstream out;
  out << hosts << " hosts, " << jetties << " Jetties of " << berths << "+" << receives << ", "
      << works << " works up to " << largest << " B, MTU " << mtu << ", hold " << hold.count()
      << "+" << hold_jitter.count() << " ns, settle " << settle.count() << "+"
      << settle_jitter.count() << " ns, ring " << ring << ", lend " << lend << ", loss "
      << impairment.loss << ", dup " << impairment.duplicate << ", reorder " << impairment.reorder
      << ", corrupt " << impairment.corrupt << ", delay " << impairment.delay.count() << "+"
      << impairment.jitter.count() << " ns, partition " << partition << ", restart " << restart
      << ", flush " << flush << ", unsignalled " << unsignalled << ", forged " << forged
      << ", lazy " << lazy << (reads ? "" : ", no reads") << ", shared " << shared << ", notify "
      << notify << ", adds " << adds << ", ordered " << ordered << (window ? ", window" : "")
      << (window && scarce ? " with few rings" : "") << (mapped ? ", mapped" : "")
      << (handed ? ", handed over" : "") << (acted ? ", not coherent" : "")
      << (rings ? ", on rings, gather " : "") << (rings ? gather : "")
      << (modes ? ", any retransmission" : "") << ", stop " << stop << ", leave " << leave
      << ", idle " << std::chrono::duration_cast<std::chrono::milliseconds>(idle_timeout).count()
      << " ms, rdma " << rdma << ", pairs fail " << pair_fails << ", late " << pair_late
      << ", stick " << stick << ", grouped " << grouped << ", " << slowness
      << " times slower, reach " << reach;
  return out.str();
}

}  // namespace urma::test
