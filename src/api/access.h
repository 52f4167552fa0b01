// Access control: the checks that come before any route (docs/security.md).
//
// A server with a token answers clients that send it. A server without a token trusts the machine it runs on.
// Browsers on that machine run pages of strangers, so the server answers only requests that no foreign page
// can cause.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace flowfabric::api {

// The server's token, which may change while it runs.
class Token {
 public:
  explicit Token(std::string value) { set(std::move(value)); }
  void set(std::string value);

  // A server without a token asks for none.
  bool is_needed() const { return !current()->empty(); }
  // True if the request carries the token, in `authorization: Bearer <token>`.
  bool is_in(const http::Request& head) const;

 private:
  std::shared_ptr<const std::string> current() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const std::string> value_;
};

// True if pages of this origin may call the API: the list has the origin, or the star.
bool is_listed(const std::vector<std::string>& origins, const std::string& origin);

// The rules by which a server without a token refuses requests of pages.
struct PageRules {
  // Accept only host names that no foreign name server can point to this machine.
  bool loopback_names_only{false};
  const std::vector<std::string>& origins;
};
// The reason for a refusal; absent if the request is to be answered.
std::optional<std::string> refuse_foreign_page(const http::Request& head, const PageRules& rules);

// True if the browser itself says that the page is of another, unlisted origin. Unlike `origin`, this also
// works behind a proxy that has changed the `host`.
bool is_sent_across_origins(const http::Request& head, const std::vector<std::string>& origins);

// A name or address of this machine, as it stands in a `host` header, with or without a port.
bool is_loopback_host(std::string_view host);

}  // namespace flowfabric::api
