#include "cli/client.h"

#include <fmt/core.h>

#include <algorithm>

#include "store/store.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

constexpr std::uint64_t kPage = 1000;

std::string encoded(std::string_view text, std::string_view also_plain) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          also_plain.find(c) != std::string_view::npos;
    if (is_plain)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string query_of(const Parameters& parameters) {
  std::string query;
  for (const auto& [name, value] : parameters) {
    if (!query.empty()) query += '&';
    query += name + "=" + encoded(value, "-._~:,");
  }
  return query;
}

int exit_code_of(int status) {
  if (status == 404) return kNotFound;
  return status == 502 || status == 503 || status == 504 ? kUnreachable : kRefused;
}

// Fails with the readable part of the server's error. `store` is the target of the request.
[[noreturn]] void fail_as_told(int status, const std::string& body, const std::string& store) {
  const auto parsed = api::Json::parse(body);
  const bool is_ours = parsed && find(parsed->root(), "code");
  if (!is_ours) {
    fail(kRefused, kUnexpectedAnswer, fmt::format("status {}", status),
         "The server there is not FlowFabric, or is older than this program.");
  }
  const auto root = parsed->root();
  Failure failure{exit_code_of(status), text_of(root, "code"), text_of(root, "error"),
                  text_of(root, "detail"), body};
  if (status == 401) {
    failure.detail.clear();
    failure.advice =
        "Set FF_API_TOKEN to the server's token, or FF_API_TOKEN_FILE to a file that holds it; the server "
        "does not accept the one that was sent, if any.";
  }
  // The id may be right and the store wrong.
  if (status == 404) failure.advice += fmt::format(" It was looked for in {}.", store::redacted_url(store));
  // The code says it already.
  if (failure.detail.starts_with("not found: ") && !failure.advice.empty()) failure.detail.clear();
  if (failure.detail.starts_with(failure.code)) failure.detail.erase(0, failure.code.size());
  while (failure.detail.starts_with(':') || failure.detail.starts_with(' ')) failure.detail.erase(0, 1);
  throw failure;
}

}  // namespace

// ---- events -----------------------------------------------------------------------------------------------

bool EventReader::read(std::string_view piece, const std::function<bool(const SentEvent&)>& take) {
  for (const char c : piece) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    const auto line = std::exchange(line_, {});
    const auto after = [&](std::string_view prefix) { return line.substr(prefix.size()); };
    if (line.starts_with("id: ")) {
      event_.id = after("id: ");
    } else if (line.starts_with("event: ")) {
      event_.name = after("event: ");
    } else if (line.starts_with("data: ")) {
      event_.data += after("data: ");
    } else if (line.empty()) {
      const auto event = std::exchange(event_, {});
      if (!event.name.empty() && !take(event)) return false;
    }
  }
  return true;
}

// ---- calls ------------------------------------------------------------------------------------------------

Client::Client(const ConnectionOptions& options, Purpose purpose) : store_(options.store) {
  auto opened = Connection::open(options, purpose);
  if (!opened) {
    auto error = opened.error();
    if (error.code == ErrorCode::transport && options.store == kDefaultStore) {
      error.advice += " `flowfabric serve` starts one; --store names another server, or a store.";
    }
    fail(error);
  }
  connection_ = *std::move(opened);
}

Reply Client::ask(http::Request request) {
  auto answer = connection_->send(request);
  if (!answer) fail(answer.error());
  if (answer->status < 200 || answer->status > 299) fail_as_told(answer->status, answer->body, store_);
  Reply reply{.status = answer->status, .body = std::move(answer->body), .document = {}};
  auto parsed = api::Json::parse(reply.body.empty() ? "null" : reply.body);
  if (!parsed) fail_as_told(answer->status, reply.body, store_);
  reply.document = *std::move(parsed);
  return reply;
}

Reply Client::get(const std::string& path, const Parameters& query) {
  return ask({.path = path, .query = query_of(query)});
}

Reply Client::post(const std::string& path, std::string json, const Parameters& query) {
  return ask({.method = "POST",
              .path = path,
              .query = query_of(query),
              .headers = {{"content-type", "application/json"}},
              .body = std::move(json)});
}

void Client::follow(const std::string& path, const Parameters& query,
                    const std::function<bool(const SentEvent&)>& take) {
  EventReader reader;
  std::optional<std::string> error;
  const auto one = [&](const SentEvent& event) {
    if (event.name != "error") return take(event);
    error = event.data;
    return false;
  };
  const auto answer = connection_->stream({.path = path, .query = query_of(query)},
                                          [&](std::string_view piece) { return reader.read(piece, one); });
  if (!answer) fail(answer.error());
  if (answer->status != 200) fail_as_told(answer->status, answer->body, store_);
  if (error) fail_as_told(error->find("_not_found\"") == std::string::npos ? 500 : 404, *error, store_);
}

bool Client::list(const std::string& path, const std::string& plural, Parameters query, std::uint64_t most,
                  const std::function<void(const std::vector<JsonView>& page)>& take) {
  std::uint64_t left = most == 0 ? UINT64_MAX : most;
  std::string cursor;
  for (;;) {
    auto page_query = query;
    page_query.emplace_back("limit", std::to_string(std::min(left, kPage)));
    if (!cursor.empty()) page_query.emplace_back("cursor", cursor);
    const auto reply = get(path, page_query);
    const auto items = items_of(reply.root(), plural);
    take(items);
    left -= std::min<std::uint64_t>(left, items.size());
    cursor = text_of(reply.root(), "next_cursor");
    if (cursor.empty()) return false;
    if (left == 0) return true;
  }
}

std::string segment(std::string_view text) {
  return encoded(text, "-._~:");
}

// ---- running ----------------------------------------------------------------------------------------------

void add_common_options(Command& command, CommonOptions& options, const std::string& json_help) {
  command.add_flag("--json", options.json, json_help);
  add_connection_options(command, options.connection);
}

int run(bool as_json, const std::function<int()>& command) {
  try {
    return command();
  } catch (const Failure& failure) {
    return tell(failure, as_json);
  } catch (const std::exception& problem) {
    return tell({kRefused, "failed", problem.what(),
                 "Nobody has foreseen this: please report it with the command that you gave."},
                as_json);
  }
}

// ---- reading answers --------------------------------------------------------------------------------------

std::optional<JsonView> find(JsonView object, std::string_view key) {
  if (object.kind() != JsonView::Kind::object) return std::nullopt;
  for (const auto member : object) {
    if (member.key() == key) return member.is_null() ? std::nullopt : std::optional(member);
  }
  return std::nullopt;
}

std::string text_of(JsonView object, std::string_view key) {
  const auto found = find(object, key);
  if (!found) return "";
  const auto kind = found->kind();
  const bool is_text = kind == JsonView::Kind::string || kind == JsonView::Kind::number;
  return is_text ? std::string(found->text()) : "";
}

std::optional<std::int64_t> number_of(JsonView object, std::string_view key) {
  const auto found = find(object, key);
  return found && found->kind() == JsonView::Kind::number ? found->to_int64() : std::nullopt;
}

std::vector<JsonView> items_of(JsonView object, std::string_view key) {
  std::vector<JsonView> items;
  const auto found = find(object, key);
  if (!found || (found->kind() != JsonView::Kind::array && found->kind() != JsonView::Kind::object))
    return {};
  for (const auto item : *found) items.push_back(item);
  return items;
}

}  // namespace flowfabric::cli
