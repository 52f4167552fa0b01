// Client addresses: membership in networks, and the name that a client is counted by.
#pragma once

#include <array>
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flowfabric::http {

// An address, or a network with the number of its fixed bits: `10.1.2.3`, `10.0.0.0/8`, `fd00::/8`.
class Network {
 public:
  // Absent if it is not a network.
  static std::optional<Network> parse(std::string_view text);
  bool contains(const boost::asio::ip::address& address) const;

 private:
  using Bytes = std::array<unsigned char, 16>;  // IPv4 as IPv6 maps it
  static Bytes bytes_of(const boost::asio::ip::address& address);

  Bytes bytes_{};
  unsigned bits_{0};
};

std::string without_mapping(const boost::asio::ip::address& address);

// The name that a client is counted by: its address; of IPv6 the first 64 bits, because a client usually owns
// all addresses that begin with them.
std::string counted_as(const boost::asio::ip::address& address);

}  // namespace flowfabric::http
