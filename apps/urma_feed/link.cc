// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <thread>

#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_feed/immediates.h"
#include "urma/urma.hpp"

namespace urma::apps::feed {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t link_berths = 256;
constexpr uint32_t acknowledgements = 64;  // that may wait
constexpr auto link_goodbye = 2s;   // after Ctrl-C, the time for a consumer that is slow or stopped
constexpr auto answer_limit = 10s;  // for the answer to a hello
constexpr auto silence = 2s;        // after this time without an acknowledgement it is probed
constexpr uint64_t greeting_tag = UINT64_MAX;
constexpr uint64_t end_tag = UINT64_MAX - 1;
constexpr uint64_t probe_tag = UINT64_MAX - 2;

apps::Service service_for(const Options& options) {
  apps::Service made = service();
  if (!options.devices.empty()) made.device = options.devices[0];
  return made;
}

Failure not_understood(const std::string& host) {
  return {Exit::error, fmt::format("the consumer at {} acknowledges messages that were not sent. "
                                   "Fix: use the same urma_feed on both sides",
                                   host)};
}

}  // namespace

// A channel to one consumer process.
struct Link::Connection {
  apps::Captures captures{"urma_feed"};  // destroyed after the device
  Device device;
  Imported consumer;
  // The library reads these until their works have completed, so they outlive the Jetty.
  std::string hello{};
  std::map<uint64_t, Sending> sending{};
  std::array<std::byte, 8> probe{};
  // Acknowledgements have no bytes; a farewell has. Buffer i, from 0, has tag i + 1.
  std::vector<std::array<char, farewell_bytes>> buffers{acknowledgements};
  Jetty jetty;
  bool welcome = false;  // the hello was answered
  bool ended = false;    // the end was posted, or has completed
  bool done = false;
  bool probing = false;
  Clock::time_point heard = Clock::now();

  Connection(const Options& options, const std::string& host)
      : device(captures.watch(apps::open_device(options.devices.empty() ? apps::device_towards(host)
                                                                        : options.devices[0]))),
        consumer(apps::find_server(device, host, service_for(options))),
        jetty(
            must(device.jetty({.berths = link_berths, .receives = acknowledgements}), "a Jetty")) {
    must(jetty.fd(), "the device");
    for (uint64_t tag = 1; tag <= acknowledgements; ++tag) expect(tag);
  }

  // Another acknowledgement may arrive. Refused only after close, which polling reports.
  void expect(uint64_t tag) {
    (void)jetty.receive(std::as_writable_bytes(std::span(buffers[tag - 1])), tag);
  }
  std::string_view text(const Completion& arrival) const {
    return {buffers[arrival.tag - 1].data(), arrival.bytes};
  }
};

Link::Link(const Options& options, std::string host, size_t index, uint64_t feed)
    : options_(options),
      host_(std::move(host)),
      index_(index),
      feed_(feed),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Link::~Link() { ::close(wake_); }

void Link::wake() { eventfd_write(wake_, 1); }

void Link::run(Backlog& backlog) {
  for (;;) {
    try {
      attempt(backlog);
      break;
    } catch (const Failure& failure) {
      const bool again = reached_ && failure.exit() == Exit::peer_lost && !apps::interrupted() &&
                         Clock::now() < patient_until_;
      if (!again) {
        verdict_.exit = failure.exit();
        verdict_.error = failure.what();
        break;
      }
      apps::print_error(apps::printable(
          fmt::format("urma_feed: {}: {}; looking for a new consumer", host_, failure.what())));
      std::this_thread::sleep_for(200ms);
    }
  }
  verdict_.acknowledged = acknowledged_;
  over_ = true;
  backlog.leave(index_);
}

void Link::attempt(Backlog& backlog) {
  Connection connection(options_, host_);
  try {
    greet(connection);
    while (!connection.done && !given_up()) turn(connection, backlog);
  } catch (const Failure&) {
    if (connection.welcome) {
      patient_until_ = Clock::now() + std::chrono::seconds(options_.patience_seconds);
    }
    throw;
  }
  if (!connection.done) {
    throw Failure(Exit::interrupted,
                  "the consumer did not acknowledge all messages within 2 s of Ctrl-C. Fix: check "
                  "whether the consumer is stopped or slow");
  }
}

bool Link::given_up() {
  if (!apps::interrupted()) return false;
  if (!leave_at_) leave_at_ = Clock::now() + link_goodbye;
  return Clock::now() > *leave_at_;
}

// `take` handles the answer.
void Link::greet(Connection& connection) {
  const Hello hello{.version = library_version(),
                    .jetty = connection.jetty.descriptor(),
                    .feed = feed_,
                    .first = acknowledged_,
                    .lines = options_.record_bytes == 0};
  connection.hello = to_text({.id = 0, .type = "hello", .body = hello}, wording());
  const Work work =
      urma::send(std::as_bytes(std::span(connection.hello)), connection.consumer.jetty)
          .tag(greeting_tag);
  if (connection.jetty.post(work) != 1) {
    throw Failure(Exit::error, "a Jetty has no berths. Fix: report this as a fault of liburma");
  }
}

void Link::post_some(Connection& connection, Backlog& backlog) {
  while (connection.welcome && connection.jetty.vacant_berths() > 2) {
    const Backlog::Message text = backlog.at(next_);
    if (text == nullptr) break;
    Sending& sending = connection.sending[next_];
    sending = {.stamp = stamp_now(), .text = text};
    const Buffer parts[] = {
        {&sending.stamp, sizeof sending.stamp},
        {const_cast<char*>(text->data()), text->size()},
    };
    const auto topic = static_cast<uint32_t>(options_.topics[next_ % options_.topics.size()]);
    const Work work = urma::send(parts, connection.consumer.jetty)
                          .immediate(immediate_of(topic, next_))
                          .tag(next_);
    if (connection.jetty.post(work) != 1) break;
    ++next_;
    sent_ = std::max(sent_, next_);
  }
  if (!connection.ended && connection.welcome && backlog.ended() &&
      acknowledged_ == backlog.count()) {
    end(connection, acknowledged_);
  }
}

// Says how many messages there were.
void Link::end(Connection& connection, uint64_t count) {
  const Value value{.number = count, .posted = {}, .again = count};
  const Work work = urma::write(std::as_bytes(std::span(&value, 1)), connection.consumer.segment,
                                end_topic * line_bytes)
                        .to(connection.consumer.jetty)
                        .immediate(immediate_of(end_topic, count))
                        .inline_data()
                        .tag(end_tag);
  connection.ended = connection.jetty.post(work) == 1;
}

void Link::take(Connection& connection, Backlog& backlog, const Completion& completion) {
  connection.heard = Clock::now();
  if (completion.operation != Operation::receive) {
    connection.sending.erase(completion.tag);
    if (completion.tag == probe_tag) connection.probing = false;
    if (completion.tag == end_tag && completion.ok()) connection.done = true;
    if (!completion.ok()) throw apps::failed_work("feeding the consumer", completion.status);
    return;
  }
  if (completion.tag == 0 || completion.tag > acknowledgements) return;
  const bool its = completion.ok() && completion.from == connection.consumer.jetty.peer;
  if (its && !completion.with_immediate) {
    take_farewell(connection, backlog, connection.text(completion));
  }
  connection.expect(completion.tag);
  if (!its || !completion.with_immediate) return;
  const uint64_t wanted = completion.immediate;
  if (wanted < acknowledged_ || wanted > sent_) throw not_understood(host_);
  if (!connection.welcome) {
    connection.welcome = true;
    verdict_.connected += reached_;
    reached_ = true;
    verdict_.resent += sent_ - wanted;
    next_ = wanted;
  } else if (wanted > next_) {
    throw not_understood(host_);
  }
  acknowledged_ = wanted;
  backlog.acknowledge(index_, wanted);
}

// The consumer ends. If it has acknowledged everything, it need not be told that this was all.
void Link::take_farewell(Connection& connection, const Backlog& backlog, std::string_view text) {
  Failed why;
  try {
    why = body_of<Failed>(parse_message(text));
  } catch (const NotUnderstood&) {
    return;  // a work will fail, without a reason
  }
  if (backlog.ended() && acknowledged_ == backlog.count()) {
    connection.done = true;
    return;
  }
  throw Failure(Exit::peer_lost, fmt::format("the consumer has ended: {}", why.message));
}

// Posts what can be posted, handles completions, and sleeps if there is nothing to do.
void Link::turn(Connection& connection, Backlog& backlog) {
  post_some(connection, backlog);
  std::array<Completion, 64> out;
  const size_t count = connection.jetty.poll(out);
  for (const Completion& completion : std::span(out).first(count)) {
    take(connection, backlog, completion);
  }
  const auto quiet = Clock::now() - connection.heard;
  if (!connection.welcome && quiet > answer_limit) {
    throw Failure(
        Exit::peer_lost,
        "the consumer does not answer a hello. Fix: use the same urma_feed on both sides");
  }
  if (acknowledged_ < next_ && quiet > silence && !connection.probing) {
    const Work probe =
        urma::read(std::span(connection.probe), connection.consumer.segment).tag(probe_tag);
    connection.probing = connection.jetty.post(probe) == 1;
  }
  if (count > 0 || !connection.jetty.arm()) return;
  const bool full = connection.jetty.vacant_berths() <= 2;
  if (connection.welcome && !full && backlog.at(next_) != nullptr) return;
  pollfd events[] = {{.fd = *connection.jetty.fd(), .events = POLLIN, .revents = 0},
                     {.fd = wake_, .events = POLLIN, .revents = 0},
                     {.fd = apps::interrupt_descriptor(), .events = POLLIN, .revents = 0}};
  // After Ctrl-C the descriptor of interrupts stays readable.
  ::poll(events, apps::interrupted() ? 2 : std::size(events), 100);
  eventfd_t times = 0;
  eventfd_read(wake_, &times);
}

}  // namespace urma::apps::feed
