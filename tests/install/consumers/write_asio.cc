// SPDX-License-Identifier: Apache-2.0
// Writes from one device to another, as an asynchronous operation.
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstring>
#include <urma/asio.hpp>

int main(int, char** arguments) {
  auto here = urma::open(arguments[1]).value();
  auto there = urma::open(arguments[1]).value();
  auto memory = there.allocate(4096).value();
  const auto target = here.import(memory.descriptor()).value();
  boost::asio::io_context context;
  auto jetty = urma::asio::Jetty::make(context.get_executor(), here).value();
  const char text[] = "hello";
  bool written = false;
  jetty.async_write(std::as_bytes(std::span(text)), target.segment, 0,
                    [&](boost::system::error_code error, const urma::Completion&) {
                      written = !error && std::memcmp(memory.bytes().data(), text, 6) == 0;
                    });
  context.run();
  if (written) std::puts("written");
  return written ? 0 : 1;
}
