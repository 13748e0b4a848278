// SPDX-License-Identifier: Apache-2.0
#include "drivers/udp/uring_io.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/above_standard.h"
#include "base/assert.h"
#include "base/not_inherited.h"
#include "drivers/udp/control.h"
#include "drivers/udp/uring_library.h"

namespace urma::drivers::udp {
namespace {

class Ring final : public UringIo {
 public:
  explicit Ring(const UringLibrary& library) : library_(library) {}
  Ring(const Ring&) = delete;
  ~Ring() override;

  // Makes the ring. Returns why not, or an empty text.
  std::string open(int socket);

  int send(int socket, std::span<mmsghdr> messages) override;
  Received receive(int socket, Buffers& buffers, std::span<Arrival> out) override;
  bool refused() const override { return refused_; }
  void leave(Buffers& buffers) override;

 private:
  static constexpr uint16_t group = 0;
  static constexpr uint32_t places = 16;  // for free buffers, a power of two
  static_assert(places >= most_received);
  static constexpr size_t name_bytes = 32;
  static_assert(name_bytes >= sizeof(SocketAddress));
  static_assert(sizeof(io_uring_recvmsg_out) + name_bytes + sizeof(Control) <= prefix);

  void keep_from_children();
  std::string try_receive(int socket);
  int execute(unsigned requests);
  bool await(unsigned completions);
  void forget_requests();
  void provide(Buffers& buffers, size_t wanted);
  uint32_t provided_at(uint32_t place) const;
  void take(const io_uring_cqe& done, Buffers& buffers, std::span<Arrival> out, Received& got);
  Arrival arrival(const std::byte* buffer, uint32_t number, uint32_t bytes);

  const UringLibrary& library_;
  const pid_t maker_ = getpid();
  io_uring ring_{};
  bool made_ = false;
  NotInherited not_inherited_;
  Region memory_ = Region::try_make(page_bytes, page_bytes);  // of `free_`
  io_uring_buf_ring* free_ = nullptr;
  uint32_t provided_ = 0;  // buffers in `free_`
  msghdr shape_{};         // the sizes of what is received beside the data
  bool refused_ = false;
};

// ---- opening

std::string reason(const char* call, int why) {
  std::string text = std::string(call) + ": " + std::strerror(why);
  if (why == EPERM || why == EACCES) {
    text += " (a sandbox, or the sysctl kernel.io_uring_disabled)";
  }
  return text;
}

std::string Ring::open(int socket) {
  io_uring_params parameters{};
  // Completions that the kernel defers to this thread interrupt it only when it waits for them.
  parameters.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL;
  int why = -library_.queue_init_params(most_sent, &ring_, &parameters);
  if (why == EINVAL) return "the kernel is older than 5.19";
  if (why != 0) return reason("io_uring_setup", why);
  made_ = true;
  keep_from_children();
  const int moved = above_standard(ring_.ring_fd);
  ring_.ring_fd = ring_.enter_ring_fd = moved;
  if (moved < 0) return reason("moving a descriptor", errno);
  not_inherited_ = NotInherited(moved);
  if (memory_.bytes() == 0) return reason("mapping memory", ENOMEM);
  free_ = reinterpret_cast<io_uring_buf_ring*>(memory_.data());
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uintptr_t>(free_);
  registration.ring_entries = places;
  registration.bgid = group;
  why = -library_.register_buf_ring(&ring_, &registration, 0);
  if (why != 0) return reason("registering a ring of buffers", why);
  shape_.msg_namelen = name_bytes;
  shape_.msg_controllen = sizeof(Control);
  return try_receive(socket);
}

// A child of fork does not get the memory of the ring. It could write there, and the kernel keeps a
// ring for as long as any process has its memory.
void Ring::keep_from_children() {
  madvise(ring_.sq.ring_ptr, ring_.sq.ring_sz, MADV_DONTFORK);
  madvise(ring_.cq.ring_ptr, ring_.cq.ring_sz, MADV_DONTFORK);
  madvise(ring_.sq.sqes, ring_.sq.ring_entries * sizeof(io_uring_sqe), MADV_DONTFORK);
}

// Finds out whether the kernel has multishot receives, by one at an empty socket.
std::string Ring::try_receive(int socket) {
  Buffers buffers(prefix);
  std::array<Arrival, most_received> out;
  const Received got = receive(socket, buffers, out);
  leave(buffers);
  if (got.why == EINVAL) return "the kernel is older than 6.0, and has no multishot receive";
  if (refused_ || (got.why != EAGAIN && got.count == 0)) return reason("io_uring_enter", got.why);
  return {};
}

Ring::~Ring() {
  not_inherited_ = NotInherited();
  // A child has other memory there.
  if (made_ && getpid() == maker_) library_.queue_exit(&ring_);
}

// ---- requests

// Lets the kernel execute the requests that were prepared. Returns how many it has taken: fewer if
// it lacks memory; if it has taken none, -1 with errno set.
int Ring::execute(unsigned requests) {
  const int done = library_.submit_and_wait(&ring_, requests);
  const unsigned left = io_uring_sq_ready(&ring_);
  if (left > 0) forget_requests();
  if (left < requests) return static_cast<int>(requests - left);
  const bool lacks_memory = done == -EAGAIN || done == -EBUSY || done == -ENOMEM;
  refused_ = done < 0 && done != -EINTR && !lacks_memory;
  errno = refused_ ? -done : EAGAIN;
  return -1;
}

// Waits until there are so many completions of requests that the kernel has taken, which takes no
// time, because no request waits. Returns false, with errno set, if the kernel refuses to say.
bool Ring::await(unsigned completions) {
  while (io_uring_cq_ready(&ring_) < completions) {
    const int done = library_.submit_and_wait(&ring_, completions);
    refused_ = done < 0 && done != -EINTR && done != -EAGAIN && done != -EBUSY;
    errno = -done;
    if (refused_) return false;
  }
  return true;
}

// Removes the requests that the kernel has not taken: they name memory that may soon be freed.
void Ring::forget_requests() {
  io_uring_sq& queue = ring_.sq;
  queue.sqe_head = queue.sqe_tail = *queue.khead;
  *queue.ktail = *queue.khead;
}

int Ring::send(int socket, std::span<mmsghdr> messages) {
  const auto count = static_cast<unsigned>(messages.size());
  for (unsigned i = 0; i < count; ++i) {
    io_uring_sqe* const request = io_uring_get_sqe(&ring_);
    io_uring_prep_sendmsg(request, socket, &messages[i].msg_hdr, send_flags);
    if (i + 1 < count) request->flags |= IOSQE_IO_LINK;
    io_uring_sqe_set_data64(request, i);
  }
  const int taken = execute(count);
  if (taken < 0) return -1;
  auto sent = static_cast<unsigned>(taken);
  // The caller sends all of it again.
  if (!await(sent)) return -1;
  int why = 0;
  unsigned seen = 0;
  unsigned head = 0;
  io_uring_cqe* done = nullptr;
  io_uring_for_each_cqe(&ring_, head, done) {
    ++seen;
    if (done->res >= 0 || io_uring_cqe_get_data64(done) >= sent) continue;
    sent = static_cast<unsigned>(io_uring_cqe_get_data64(done));
    why = -done->res;
  }
  io_uring_cq_advance(&ring_, seen);
  if (sent > 0) return static_cast<int>(sent);
  errno = why;
  return -1;
}

// ---- receiving

// Returns the number of a buffer that the kernel may fill, the oldest first.
uint32_t Ring::provided_at(uint32_t place) const {
  return free_->bufs[(free_->tail - provided_ + place) % places].bid;
}

// Lets the kernel fill as many buffers as are wanted, as far as there are free ones.
void Ring::provide(Buffers& buffers, size_t wanted) {
  int added = 0;
  for (; provided_ < wanted && buffers.free() > 0; ++provided_) {
    const uint32_t buffer = buffers.take();
    io_uring_buf_ring_add(free_, buffers.at(buffer), buffers.bytes_each(),
                          static_cast<uint16_t>(buffer), places - 1, added++);
  }
  if (added > 0) io_uring_buf_ring_advance(free_, added);
}

BatchIo::Received Ring::receive(int socket, Buffers& buffers, std::span<Arrival> out) {
  provide(buffers, out.size());
  URMA_ASSERT(provided_ <= out.size(), "each message has a place");
  if (provided_ == 0) return {};
  io_uring_sqe* const request = io_uring_get_sqe(&ring_);
  io_uring_prep_recvmsg_multishot(request, socket, &shape_, MSG_DONTWAIT);
  request->flags |= IOSQE_BUFFER_SELECT;
  request->buf_group = group;
  if (execute(1) < 0) return {.count = 0, .why = errno};
  Received got;
  // The last completion of the request says that no more follow.
  for (bool more = true; more;) {
    if (!await(1)) {
      got.why = errno;
      break;
    }
    unsigned seen = 0;
    unsigned head = 0;
    io_uring_cqe* done = nullptr;
    io_uring_for_each_cqe(&ring_, head, done) {
      ++seen;
      more = (done->flags & IORING_CQE_F_MORE) != 0;
      take(*done, buffers, out, got);
    }
    io_uring_cq_advance(&ring_, seen);
  }
  return got;
}

void Ring::take(const io_uring_cqe& done, Buffers& buffers, std::span<Arrival> out, Received& got) {
  const bool has_buffer = (done.flags & IORING_CQE_F_BUFFER) != 0;
  const uint32_t buffer = done.flags >> IORING_CQE_BUFFER_SHIFT;
  if (has_buffer) --provided_;
  if (done.res >= 0 && has_buffer) {
    out[got.count++] = arrival(buffers.at(buffer), buffer, static_cast<uint32_t>(done.res));
    return;
  }
  if (has_buffer) buffers.give_back(buffer);
  // Without a buffer the kernel does not look whether there is another message.
  got.why = done.res == -ENOBUFS ? 0 : -done.res;
}

// The kernel writes the sizes, the address, the control messages and the data, one after the other,
// each in as much room as `shape_` has for it.
Arrival Ring::arrival(const std::byte* buffer, uint32_t number, uint32_t bytes) {
  constexpr uint32_t before_data = sizeof(io_uring_recvmsg_out) + name_bytes + sizeof(Control);
  io_uring_recvmsg_out sizes;
  std::memcpy(&sizes, buffer, sizeof sizes);
  SocketAddress from;
  std::memcpy(&from, buffer + sizeof sizes, sizeof from);
  Control control;
  std::memcpy(&control, buffer + sizeof sizes + name_bytes, sizeof control);
  Arrival arrival{.buffer = number,
                  .offset = before_data,
                  .bytes = bytes - before_data,
                  .from = from_sockaddr(from.any)};
  msghdr header{};
  header.msg_control = &control;
  header.msg_controllen = sizes.controllen;
  read_controls(header, arrival);
  return arrival;
}

void Ring::leave(Buffers& buffers) {
  for (uint32_t i = 0; i < provided_; ++i) buffers.give_back(provided_at(i));
  io_uring_buf_ring_advance(free_, -static_cast<int>(provided_));
  provided_ = 0;
}

}  // namespace

Result<OpenedUring> open_uring(int socket) {
  const Result<const UringLibrary*> library = load_uring_library();
  if (!library) return library.error();
  auto ring = std::make_unique<Ring>(**library);
  OpenedUring opened{.io = nullptr, .why_not = ring->open(socket)};
  if (opened.why_not.empty()) opened.io = std::move(ring);
  return opened;
}

}  // namespace urma::drivers::udp
