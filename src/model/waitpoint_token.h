// The token that lets somebody outside deliver signals to a waitpoint: `<kid>:<64 hex digits>`, an
// HMAC-SHA256 of `<kid>:<execution_id>:<waitpoint_id>` under the secret of that name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flowfabric/ids.h"
#include "model/encoding.h"  // for the secrets and the comparison of tokens

namespace flowfabric {

// Texts that may be shown: `k1:<REDACTED:len=64>`. A token or secret itself is never printed.
std::string redacted_token(std::string_view token);
// The first 16 digits, which tell tokens apart and nothing more; "" if it is malformed.
std::string token_fingerprint(std::string_view token);

struct TokenParts {
  std::string_view kid;
  std::string_view digest;
};
// Split at the first colon. Absent: no kid, or not exactly 64 hex digits behind it.
std::optional<TokenParts> split_token(std::string_view token);

// A kid is 1 to 128 visible characters of ASCII without a colon: it comes from outside and is looked up.
bool is_kid(std::string_view kid);

std::string mint_token(std::string_view kid, std::string_view secret, const ExecutionId& execution_id,
                       const WaitpointId& waitpoint_id);

}  // namespace flowfabric
