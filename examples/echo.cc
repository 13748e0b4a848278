// SPDX-License-Identifier: Apache-2.0
// A service of coroutines: it sends each message back to its client.
//
//   example_echo serve [DEVICE]           until Ctrl-C
//   example_echo say TEXT [HOST [DEVICE]]
//
// A message names its sender, but not how to answer: a Jetty takes messages only from peers
// that have its descriptor. So a client's first message is its own descriptor.
#include <urma/asio.hpp>  // first, because Boost 1.74 lacks an include

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <urma/urma.hpp>

namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;

// A client is one Jetty of one incarnation of a process.
using Client = std::tuple<uint32_t, uint32_t, urma::JettyId>;
Client client_of(const urma::Completion& arrival) {
  return {arrival.from.index, arrival.from.generation, arrival.from_jetty};
}

std::string text_of(const urma::asio::Arrival& arrival) {
  return {reinterpret_cast<const char*>(arrival.bytes().data()), arrival.bytes().size()};
}

// The message, and with it its buffer, is kept until the answer has been sent, so no copy is made.
// A client that is slow to take its answers delays its own messages, not those of other clients.
awaitable<void> answer(urma::asio::Jetty& jetty, urma::asio::Arrival message,
                       urma::RemoteJetty client) {
  boost::system::error_code error;
  co_await jetty.async_send(message.bytes(), client,
                            boost::asio::redirect_error(boost::asio::use_awaitable, error));
  if (error) std::printf("an answer was not sent: %s\n", error.message().c_str());
}

awaitable<void> serve(urma::Device& device, urma::asio::Jetty& jetty) {
  std::map<Client, urma::RemoteJetty> clients;
  const auto executor = co_await boost::asio::this_coro::executor;
  for (;;) {
    urma::asio::Arrival message = co_await jetty.async_receive();
    const auto known = clients.find(client_of(message.completion()));
    if (known != clients.end()) {
      co_spawn(executor, answer(jetty, std::move(message), known->second), boost::asio::detached);
    } else if (const auto found = device.import(text_of(message), 0s); found && found->jetty) {
      clients.emplace(client_of(message.completion()), found->jetty);
    }  // otherwise the message is not a descriptor and is ignored
  }
}

awaitable<void> say(urma::asio::Jetty& jetty, urma::RemoteJetty service, std::string text) {
  const std::string who = jetty.jetty().descriptor();
  co_await jetty.async_send(std::as_bytes(std::span(who)), service);
  co_await jetty.async_send(std::as_bytes(std::span(text)), service);
  const urma::asio::Arrival echo = co_await jetty.async_receive(5s);
  std::printf("%s\n", text_of(echo).c_str());
}

int run(const std::string& what, const std::string& text, const std::string& host,
        const std::string& device_text) {
  boost::asio::io_context context;
  auto device = urma::open(device_text).value();
  // An answer that the client does not take fails after a second.
  auto jetty = urma::asio::Jetty::make(context.get_executor(), device,
                                       {.receives = 64, .receiver_timeout = 1s})
                   .value();
  const auto ended = [&](std::exception_ptr why) {
    context.stop();
    if (why) std::rethrow_exception(why);
  };
  boost::asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](auto, int) { context.stop(); });
  if (what == "serve") {
    device.publish("echo", jetty.jetty(), urma::everyone()).value();
    std::printf("echo at %s\n", to_string(device.endpoint()).c_str());
    std::fflush(stdout);
    co_spawn(context, serve(device, jetty), ended);
  } else {
    const auto service = device.import("urma://" + host + "/echo").value().jetty;
    co_spawn(context, say(jetty, service, text), ended);
  }
  context.run();
  return 0;
}

}  // namespace

int main(int count, char** words) try {
  const auto word = [&](int at, std::string_view otherwise) {
    return std::string(at < count ? words[at] : otherwise);
  };
  if (word(1, "") == "serve") return run("serve", "", "", word(2, urma::default_device));
  if (word(1, "") == "say" && count > 2) {
    return run("say", word(2, ""), word(3, "localhost"), word(4, urma::default_device));
  }
  std::fprintf(stderr, "usage: example_echo serve [DEVICE] | say TEXT [HOST [DEVICE]]\n");
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "example_echo: %s\n", e.what());
  return 1;
}
