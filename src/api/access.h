// Who may ask. The checks that come before any route (docs/security.md).
//
// A server with a token answers those who send it. A server without one trusts the machine it runs on, and
// browsers there run pages of strangers: so it answers only requests that no foreign page can cause.
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

  // Without one, nobody needs any.
  bool is_needed() const { return !current()->empty(); }
  // The request carries it, in `authorization: Bearer <token>`.
  bool is_in(const http::Request& head) const;

 private:
  std::shared_ptr<const std::string> current() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const std::string> value_;
};

// Whether pages of this origin may call the API: it is listed, or the list has the star.
bool is_listed(const std::vector<std::string>& origins, const std::string& origin);

// Why a server without a token does not answer a request; absent: it does.
struct PageRules {
  // Only names that no foreign name server can give to an address of this machine.
  bool loopback_names_only{false};
  const std::vector<std::string>& origins;
};
std::optional<std::string> refuse_foreign_page(const http::Request& head, const PageRules& rules);

// The browser itself says that the page is of another origin, which is not listed. Unlike `origin`, that is
// so behind a proxy, too, which may have changed the `host`.
bool is_sent_across_origins(const http::Request& head, const std::vector<std::string>& origins);

// A name or address of this machine, as it stands in a `host` header, with or without a port.
bool is_loopback_host(std::string_view host);

}  // namespace flowfabric::api
