// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace urma::apps::notify {

// One step of the two processes of the demonstration, or of a packet between them.
struct Event {
  enum class Kind : uint8_t { post, completion, immediate, leaves, arrives, lost };

  uint64_t nanoseconds = 0;  // calendar time
  Kind kind = Kind::post;
  uint64_t number = 0;      // post, completion, immediate: of the work, from 1
  uint32_t berths = 0;      // post, completion: how many are held then
  bool to_receiver = true;  // of a packet
  std::string text{};       // the packet's name; the receiver's memory
};

struct Recording {
  int sender = 0;  // the two processes
  int receiver = 0;
  uint32_t berths = 0;
  std::vector<Event> events;
};

// Runs works between this process and a child over a network that loses packets, at full speed, and
// returns what both recorded: posts, completions and immediates, and the packets in the captures of
// both devices. Called before any device is opened, because it forks. Throws a Failure.
Recording record();

// One packet of a capture.
struct CapturedPacket {
  uint64_t nanoseconds = 0;
  bool outgoing = false;
  std::string bytes;  // from the header behind UDP's
};
// Reads a capture that a device has written (drivers/pcap). Packets that are not IPv4 and UDP are
// left out, and so is all from the first block on that is not whole.
std::vector<CapturedPacket> read_capture(const std::filesystem::path& file);
// The same for what is in such a file.
std::vector<CapturedPacket> parse_capture(const std::string& all);
// Names a packet for people: "Write_imm, PSN 7".
std::string packet_name(const std::string& bytes);

}  // namespace urma::apps::notify
