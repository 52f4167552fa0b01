#include "http/networks.h"

#include <algorithm>
#include <charconv>

namespace flowfabric::http {

namespace asio = boost::asio;

std::optional<Network> Network::parse(std::string_view text) {
  const auto slash = text.find('/');
  boost::system::error_code error;
  const auto address = asio::ip::make_address(std::string(text.substr(0, slash)), error);
  if (error) return std::nullopt;
  const unsigned most = address.is_v4() ? 32 : 128;
  unsigned bits = most;
  if (slash != text.npos) {
    const auto digits = text.substr(slash + 1);
    const auto* const end = digits.data() + digits.size();
    const auto [rest, trouble] = std::from_chars(digits.data(), end, bits);
    if (trouble != std::errc{} || rest != end || bits > most) return std::nullopt;
  }
  Network network;
  network.bytes_ = bytes_of(address);
  network.bits_ = bits + (128 - most);
  return network;
}

bool Network::contains(const asio::ip::address& address) const {
  const auto bytes = bytes_of(address);
  const auto whole = bits_ / 8;
  if (!std::equal(bytes.begin(), bytes.begin() + whole, bytes_.begin())) return false;
  const auto rest = bits_ % 8;
  return rest == 0 || ((bytes[whole] ^ bytes_[whole]) >> (8 - rest)) == 0;
}

Network::Bytes Network::bytes_of(const asio::ip::address& address) {
  const auto as_v6 =
      address.is_v4() ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()) : address.to_v6();
  return as_v6.to_bytes();
}

std::string without_mapping(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
}

std::string counted_as(const asio::ip::address& address) {
  if (address.is_v4() || address.to_v6().is_v4_mapped()) return without_mapping(address);
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace flowfabric::http
