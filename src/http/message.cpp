#include "http/message.h"

#include <algorithm>

namespace flowfabric::http {

const std::string* Request::header(std::string_view lower_case_name) const {
  const auto found = std::ranges::find(headers, lower_case_name, &Header::first);
  return found == headers.end() ? nullptr : &found->second;
}

}  // namespace flowfabric::http
