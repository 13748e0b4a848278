// SPDX-License-Identifier: Apache-2.0
#include "drivers/udp/udp_port.h"

#include <linux/errqueue.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "drivers/random_eid.h"

namespace urma::drivers::udp {
namespace {

// The limits of one segmented send: of the kernel on segments, and of UDP on the length.
constexpr unsigned most_segments = 64;
constexpr size_t most_segmented_bytes = 65000;
// The most bytes that the headers of IP, UDP and UB add to the payload of a packet.
constexpr uint32_t overhead = 48 + 96;
constexpr size_t small = 512;

}  // namespace

// A batch of messages to be sent, kept between calls because they are large.
struct UdpPort::Batch {
  std::array<mmsghdr, BatchIo::most_sent> headers;
  std::array<iovec, iovecs> vectors;
  std::array<SocketAddress, BatchIo::most_sent> addresses;
  std::array<Control, BatchIo::most_sent> controls;
  std::array<uint32_t, BatchIo::most_sent> frames;  // in each message
  unsigned count = 0;
  unsigned vectors_used = 0;
  bool to_partner = false;

  void clear(bool for_partner) {
    count = vectors_used = 0;
    to_partner = for_partner;
  }
  // Begins a message. The connected socket, which sends to the partner, needs no address.
  void begin(const Endpoint& to, Ecn ecn) {
    headers[count] = {};
    msghdr& header = headers[count].msg_hdr;
    if (!to_partner) {
      header.msg_namelen = to_sockaddr(to, addresses[count]);
      header.msg_name = &addresses[count];
    }
    header.msg_iov = &vectors[vectors_used];
    header.msg_control = &controls[count];
    if (ecn != Ecn::not_ect) add_ecn(header, to, ecn);
  }
  void end(size_t frames_in_it) { frames[count++] = static_cast<uint32_t>(frames_in_it); }
  void add(const void* data, size_t bytes) {
    if (bytes == 0) return;
    vectors[vectors_used++] = {const_cast<void*>(data), bytes};
    ++headers[count].msg_hdr.msg_iovlen;
  }
  void segment(size_t bytes) {
    add_control(headers[count].msg_hdr, SOL_UDP, UDP_SEGMENT, static_cast<uint16_t>(bytes));
  }
};

Result<std::unique_ptr<PacketPort>> UdpPort::open(const Settings& settings) {
  Result<Socket> main = Socket::make(settings);
  if (!main) return main.error();
  const Result<Endpoint> self = main->bind(settings);
  if (!self) return self.error();
  Result<Socket> other = Socket::make(settings);
  if (!other) return other.error();
  OpenedUring uring;
  if (settings.io == IoChoice::uring) {
    // Nothing arrives at this socket yet, because it has no address.
    Result<OpenedUring> opened = open_uring(other->descriptor());
    if (!opened) return opened.error();
    uring = std::move(*opened);
  }
  return std::unique_ptr<PacketPort>(
      new UdpPort(std::move(*main), std::move(*other), std::move(uring), settings, *self));
}

UdpPort::UdpPort(Socket main, Socket other, OpenedUring uring, const Settings& settings,
                 const Endpoint& self)
    : sockets_{std::move(main), std::move(other)},
      descriptors_{sockets_[0].descriptor(), sockets_[1].descriptor()},
      settings_(settings),
      gso_(sockets_[0].gso()),
      may_talk_(!settings.zero_id),
      batch_(std::make_unique<Batch>()),
      uring_(std::move(uring.io)),
      buffers_(uring_ != nullptr ? UringIo::prefix : 0) {
  if (uring_ != nullptr) io_ = uring_.get();
  const Socket::Interface interface = sockets_[0].interface_of(self);
  uint32_t mtu = settings.mtu;
  if (mtu == 0) {
    mtu = 8192;
    while (mtu > 1024 && mtu + overhead > interface.mtu) mtu /= 2;
  }
  const bool own_port = self.port != ub_port;
  const bool huge_pages = buffers_.use_huge_pages();
  facts_.self = self;
  facts_.eid = settings.eid != Eid{} ? settings.eid : own_port ? random_eid() : self.address;
  facts_.mtu = mtu;
  facts_.buffer_bytes = sockets_[0].receive_buffer_bytes();
  facts_.carries.ecn = settings.ecn;
  facts_.line_bytes_per_second = interface.bytes_per_second;
  facts_.description = "UDP socket on " + to_string(self) + (own_port ? " (off the UB port)" : "") +
                       ", MTU " + std::to_string(mtu) + (gso_ ? ", GSO" : ", no GSO") +
                       (sockets_[0].gro() ? ", GRO" : ", no GRO") + (settings.ecn ? ", ECN" : "") +
                       (uring_ != nullptr        ? ", io_uring"
                        : !uring.why_not.empty() ? ", no io_uring"
                                                 : "") +
                       (settings.zero_id ? ", IPv4 ID 0" : "") + ", receive buffer " +
                       std::to_string(facts_.buffer_bytes / 1024) + " KiB" +
                       (huge_pages ? ", huge pages where there are any" : "");
  state_settings(settings, interface);
  state_io(settings.io, uring.why_not);
  facts_.settings.push_back({"huge_pages", huge_pages ? "where there are any" : "no",
                             Origin::system, "", "huge pages for received packets"});
}

// The next UDP port, so that a firewall can be told which ports are used; any free one, if that is
// taken or the device itself asked for any.
Result<std::unique_ptr<PacketPort>> UdpPort::beside(const Eid& eid) {
  Settings settings = settings_;
  settings.address = facts_.self.address;
  settings.eid = eid;
  const uint32_t next = facts_.self.port + ++beside_;
  if (!settings.any_port && next <= UINT16_MAX) {
    settings.port = static_cast<uint16_t>(next);
    Result<std::unique_ptr<PacketPort>> made = open(settings);
    if (made || made.error().status != Status::address_in_use) return made;
  }
  settings.any_port = true;
  return open(settings);
}

// Lists each value in effect with its source.
void UdpPort::state_settings(const Settings& settings, const Socket::Interface& interface) {
  SettingList& out = facts_.settings;
  out = settings.options;
  const bool named = settings.address != Eid{};
  const bool own_port = facts_.self.port != ub_port;
  const Socket& socket = sockets_[0];
  out.push_back({"address", to_string(facts_.self), named ? Origin::device_string : Origin::drawn,
                 !named                                          ? "the first free 127.0.0.N"
                 : settings.any_port                             ? "port 0 asks for any free port"
                 : own_port && settings.port != facts_.self.port ? "port 4792 is taken, so the "
                                                                   "system chose another one"
                                                                 : "",
                 "where peers reach this device"});
  out.push_back({"eid", to_string(facts_.eid), own_port ? Origin::drawn : Origin::driver,
                 own_port ? "random, because the port is not 4792" : "the address, on port 4792",
                 "the identity of this device"});
  out.push_back({"mtu", size_text(facts_.mtu),
                 settings.mtu != 0 ? Origin::device_string : Origin::system,
                 (interface.name.empty() ? "no interface has this address" : interface.name) +
                     " has an MTU of " + std::to_string(interface.mtu),
                 "largest payload of a packet, in bytes"});
  const auto buffer = [&](const char* which, uint32_t bytes, const char* limit) {
    const bool capped = bytes < settings.rcvbuf;
    out.push_back({which, size_text(bytes), capped ? Origin::system : Origin::driver,
                   capped ? size_text(settings.rcvbuf) + " requested, limited by net.core." + limit
                          : "as udp.rcvbuf says",
                   "the most bytes that the socket holds"});
  };
  buffer("receive_buffer", socket.receive_buffer_bytes(), "rmem_max");
  buffer("send_buffer", socket.send_buffer_bytes(), "wmem_max");
  const auto feature = [&](const char* which, bool has, bool wanted, const char* meaning) {
    out.push_back({which, yes_or_no(has), wanted ? Origin::system : Origin::device_string,
                   has      ? "the kernel has it"
                   : wanted ? "the kernel lacks it"
                            : "",
                   meaning});
  };
  feature("segmentation", gso_, settings.gso && !settings.zero_id,
          "packets of one size are sent by one call (UDP GSO)");
  feature("coalescing", socket.gro(), settings.gro,
          "packets of one size are received by one call (UDP GRO)");
}

void UdpPort::state_io(IoChoice chosen, const std::string& why_not) {
  const bool refused = !why_not.empty();
  facts_.settings.push_back({"io", uring_ != nullptr ? "uring" : "mmsg",
                             refused                         ? Origin::system
                             : chosen == IoChoice::automatic ? Origin::driver
                                                             : Origin::device_string,
                             refused ? "io_uring was requested, but cannot be used: " + why_not
                             : chosen == IoChoice::automatic
                                 ? "no measurement found io_uring faster (docs/performance.md)"
                                 : "",
                             "how batches of packets are sent and received"});
}

UdpPort::~UdpPort() = default;

// ---- sending

// Puts frames from the front into the next message: with GSO as many as have one size, one
// destination and one ECN field, the last of which may be shorter. Returns how many; 0 if no iovecs
// are left.
size_t UdpPort::group(std::span<TxFrame* const> frames, Batch& batch) const {
  const size_t size = frames[0]->bytes();
  const size_t most = gso_ ? std::min<size_t>(most_segments, most_segmented_bytes / size) : 1;
  const Ecn ecn = ecn_of(*frames[0]);
  batch.begin(frames[0]->to, ecn);
  size_t count = 0;
  for (bool shorter = false; count < frames.size() && count < std::max<size_t>(most, 1); ++count) {
    const TxFrame& frame = *frames[count];
    const size_t bytes = frame.bytes();
    if (shorter || bytes > size || !(frame.to == frames[0]->to) || ecn_of(frame) != ecn) break;
    if (batch.vectors_used + frame.piece_count + 2u > iovecs) break;
    shorter = bytes < size;
    batch.add(frame.head, frame.head_bytes);
    for (unsigned i = 0; i < frame.piece_count; ++i)
      batch.add(frame.pieces[i].data, frame.pieces[i].bytes);
    batch.add(frame.tail.data(), frame.tail_bytes);
  }
  if (count == 0) return 0;
  if (count > 1) batch.segment(size);
  batch.end(count);
  return count;
}

// Puts as many frames from the front into messages as one call takes.
void UdpPort::gather(std::span<TxFrame* const> frames, Batch& batch) const {
  batch.clear(frames[0]->to == partner_);
  for (size_t at = 0; at < frames.size() && batch.count < BatchIo::most_sent;) {
    if ((frames[at]->to == partner_) != batch.to_partner) return;
    const size_t grouped = group(frames.subspan(at), batch);
    if (grouped == 0) return;
    at += grouped;
  }
}

// Returns how many messages of the batch the kernel took, or -1.
int UdpPort::transmit(BatchIo& io, Batch& batch) {
  // All packets to the partner use one socket, or a NIC with several queues would reorder them.
  const int socket = descriptors_[batch.to_partner ? partner : everybody];
  return io.send(socket, std::span(batch.headers).first(batch.count));
}

// Sends one small datagram, as a request or a reply is. Copied into one piece it costs the kernel
// 0.1 us less than gathered from three.
int UdpPort::transmit_small(const TxFrame& frame, size_t bytes) {
  std::array<std::byte, small> datagram;
  flatten(frame, datagram.data());
  if (talk_ == Talk::no || !(frame.to == partner_)) count_towards_talk(frame.to);
  const bool to_partner = frame.to == partner_;
  if (const Ecn ecn = ecn_of(frame); ecn != Ecn::not_ect) {
    // `send` and `sendto` have no argument for it.
    batch_->clear(to_partner);
    batch_->begin(frame.to, ecn);
    batch_->add(datagram.data(), bytes);
    batch_->end(1);
    return transmit(single_io_, *batch_);
  }
  if (to_partner) {
    return ::send(descriptors_[partner], datagram.data(), bytes, BatchIo::send_flags) < 0 ? -1 : 1;
  }
  SocketAddress to;
  const socklen_t length = to_sockaddr(frame.to, to);
  const int socket = descriptors_[everybody];
  return sendto(socket, datagram.data(), bytes, BatchIo::send_flags, &to.any, length) < 0 ? -1 : 1;
}

// ---- the partner

// Called when a small datagram is sent alone. A peer to which many are sent, and from which small
// datagrams arrive in between, becomes the partner. The connected socket knows its route, and while
// nothing is coalesced there a plain `recv` suffices: together this saves 0.3 us of half a round
// trip.
void UdpPort::count_towards_talk(const Endpoint& to) {
  constexpr uint32_t enough = 64;
  constexpr uint32_t penalty = 4;  // small, since acknowledgements are sent in between
  if (!may_talk_) return;
  const bool in_turn = std::exchange(heard_, false);
  if (!(to == candidate_)) {
    candidate_ = to;
    turns_ = 0;
  }
  turns_ = in_turn ? turns_ + 1 : turns_ - std::min(turns_, penalty);
  if (turns_ < enough) return;
  turns_ = 0;
  if (!shared_) shared_ = sockets_[partner].share(sockets_[everybody], facts_.self);
  if (!shared_ || !sockets_[partner].connect(to)) return;
  partner_ = to;
  talk_ = Talk::soon;
}

// Stops coalescing, which loses the sizes of datagrams that are queued coalesced; so the queue must
// be empty. Datagrams that another processor queues at this moment are taken for one; its ICRC is
// wrong.
void UdpPort::begin_talk() {
  sockets_[partner].coalesce(false);
  std::byte any;
  if (recv(descriptors_[partner], &any, sizeof any, MSG_PEEK | MSG_DONTWAIT) < 0 &&
      errno == EAGAIN) {
    talk_ = Talk::yes;
  } else {
    sockets_[partner].coalesce(true);
  }
}

// Coalesces datagrams again, because more of them arrive together than in a conversation.
void UdpPort::end_talk() {
  sockets_[partner].coalesce(true);
  talk_ = Talk::no;
  talk_in_a_row_ = 0;
}

size_t UdpPort::send(std::span<TxFrame* const> frames, Time) {
  size_t taken = 0;
  bool tried = false;
  while (taken < frames.size()) {
    const auto rest = frames.subspan(taken);
    const size_t bytes = rest.size() == 1 ? rest[0]->bytes() : SIZE_MAX;
    const bool alone = bytes <= small;
    if (!alone) gather(rest, *batch_);
    ++counters_.calls_sent;
    int sent = alone ? transmit_small(*rest[0], bytes) : transmit(*io_, *batch_);
    if (sent <= 0) {
      const int why = errno;
      if (why == EAGAIN || why == EWOULDBLOCK) break;
      if (handle_send_error(why) && !std::exchange(tried, true)) continue;
      // This message cannot be sent. It counts as taken, and is lost as in the network.
      counters_.send_failures += alone ? 1 : batch_->frames[0];
      counters_.latest_failure = why;
      sent = 1;
    }
    tried = false;
    uint32_t done = alone ? 1 : 0;
    if (!alone) {
      for (int i = 0; i < sent; ++i) done += batch_->frames[static_cast<size_t>(i)];
    }
    for (uint32_t i = 0; i < done; ++i) pool_.take_back(frames[taken + i]);
    counters_.frames_sent += done;
    taken += done;
  }
  return taken;
}

// A filter of system calls that the program has installed since may forbid io_uring. Then the port
// continues without it. Returns whether this has just happened.
bool UdpPort::leave_refused_ring() {
  if (io_ == &single_io_ || !uring_->refused()) return false;
  uring_->leave(buffers_);
  io_ = &single_io_;
  return true;
}

// Returns true if the error may belong to an earlier datagram, or is that of a ring that the port
// has left, so that the caller tries again.
bool UdpPort::handle_send_error(int why) {
  if (leave_refused_ring()) return true;
  switch (why) {
    case EINTR:
      return true;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
      // Usually the error of an earlier datagram, reported now and only once.
      drain_all_errors();
      return true;
    case EIO:
    case EOPNOTSUPP:
      // The interface has no checksum offload, which GSO needs: continue without GSO.
      return std::exchange(gso_, false);
    default:
      // The kernel also queues some errors of its own (EMSGSIZE).
      drain_all_errors();
      return false;
  }
}

void UdpPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) pool_.take_back(frame);
}

// ---- receiving

void UdpPort::drain_all_errors() {
  for (const int socket : descriptors_) drain_errors(socket);
}

// Returns whether this entry of the error queue is an ICMP message that says that a destination
// cannot be reached. Others are errors of this host (EMSGSIZE of a send), and "too large" from a
// router.
bool UdpPort::says_unreachable(msghdr& entry) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&entry); control != nullptr;
       control = CMSG_NXTHDR(&entry, control)) {
    const bool v4 = control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR;
    const bool v6 = control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    sock_extended_err why{};
    std::memcpy(&why, CMSG_DATA(control), sizeof why);
    const bool from_network =
        why.ee_origin == SO_EE_ORIGIN_ICMP || why.ee_origin == SO_EE_ORIGIN_ICMP6;
    return from_network && why.ee_errno != EMSGSIZE;
  }
  return false;
}

// Empties the error queue of a socket, which would keep the socket readable. Each ICMP message is
// one entry. The error that a call returned belongs to one of these entries, so it is not counted
// as well.
void UdpPort::drain_errors(int socket) {
  for (int i = 0; i < 64; ++i) {
    alignas(cmsghdr) std::array<std::byte, 256> control;
    std::byte payload[64];
    iovec vector{payload, sizeof payload};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    if (recvmsg(socket, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    if (says_unreachable(header)) ++counters_.unreachable;
  }
}

size_t UdpPort::receive(std::span<RxFrame> frames, Time now) {
  size_t count = split(frames);
  if (count < frames.size()) {
    const bool came = fetch(latest_);
    if (shared_) look_elsewhere(came, now);
    count += split(frames.subspan(count));
  }
  counters_.frames_received += count;
  return count;
}

// The socket from which the last datagram came is likely to have the next one. The other socket is
// polled at least every 2 us, or 50 us while the first one is busy.
void UdpPort::look_elsewhere(bool busy_here, Time now) {
  constexpr Duration patience = std::chrono::microseconds(2);
  constexpr Duration busy_patience = std::chrono::microseconds(50);
  if (now < looked_elsewhere_at_ + (busy_here ? busy_patience : patience)) return;
  looked_elsewhere_at_ = now;
  const unsigned other = latest_ == everybody ? partner : everybody;
  if (fetch(other) && !busy_here) latest_ = other;
}

// Receives datagrams by one system call. Returns false if there are none.
bool UdpPort::fetch(unsigned from) {
  if (from == partner && talk_ == Talk::yes) return fetch_talk();
  const BatchIo::Received got = io_->receive(descriptors_[from], buffers_, arrivals_);
  if (got.count > 0 || got.why != 0) ++counters_.calls_received;
  for (unsigned i = 0; i < got.count; ++i) put_in_line(arrivals_[i]);
  if (got.why != 0) note_receive_error(got.why, descriptors_[from]);
  const bool empty = got.count == 0 && got.why == EAGAIN;
  if (empty && from == partner && talk_ == Talk::soon) begin_talk();
  return got.count > 0;
}

// Receives one datagram from the partner. Returns false if there is none.
bool UdpPort::fetch_talk() {
  if (buffers_.free() == 0) return false;
  const int socket = descriptors_[partner];
  Arrival arrival{.from = partner_};
  int why = 0;
  ++counters_.calls_received;
  if (facts_.carries.ecn) {
    // `recv` does not report the ECN field.
    why = single_io_.receive(socket, buffers_, {&arrival, 1}).why;
  } else {
    const ssize_t bytes =
        recv(socket, buffers_.at(buffers_.next(0)), Buffers::data_bytes, MSG_DONTWAIT);
    if (bytes < 0) {
      why = errno;
    } else {
      arrival.buffer = buffers_.take();
      arrival.bytes = arrival.segment = static_cast<uint32_t>(bytes);
    }
  }
  if (why != 0) {
    talk_in_a_row_ = 0;
    note_receive_error(why, socket);
    return false;
  }
  put_in_line(arrival);
  if (arrival.bytes > small || ++talk_in_a_row_ > BatchIo::most_received) end_talk();
  return true;
}

void UdpPort::note_receive_error(int why, int socket) {
  if (why == EAGAIN || why == EINTR || leave_refused_ring()) return;
  drain_errors(socket);
}

// Adds a buffer that has been filled to the line.
void UdpPort::put_in_line(const Arrival& arrival) {
  heard_ = arrival.bytes <= small;
  filled_[arrival.buffer] = {.from = arrival.from,
                             .ecn = arrival.ecn,
                             .segment = arrival.segment,
                             .next = arrival.offset,
                             .end = arrival.offset + arrival.bytes,
                             .lent = 1};
  line_[(line_first_ + line_count_++) % Buffers::count] = arrival.buffer;
}

size_t UdpPort::split(std::span<RxFrame> frames) {
  size_t count = 0;
  while (count < frames.size() && line_count_ > 0) {
    const uint32_t buffer = line_[line_first_];
    Filled& filled = filled_[buffer];
    if (filled.next < filled.end) {
      const uint32_t bytes = std::min(filled.segment, filled.end - filled.next);
      frames[count++] = {.data = buffers_.at(buffer) + filled.next,
                         .bytes = bytes,
                         .cookie = buffer,
                         .from = &filled.from,
                         .ecn = filled.ecn};
      filled.next += bytes;
      ++filled.lent;
    }
    if (filled.next >= filled.end) {
      line_first_ = (line_first_ + 1) % Buffers::count;
      --line_count_;
      done_with(buffer);
    }
  }
  return count;
}

void UdpPort::done_with(uint32_t buffer) {
  if (--filled_[buffer].lent == 0) buffers_.give_back(buffer);
}

void UdpPort::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) done_with(frame.cookie);
}

}  // namespace urma::drivers::udp
