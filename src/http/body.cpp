#include "http/body.h"

#include <algorithm>
#include <charconv>

#include "model/encoding.h"

namespace flowfabric::http {

namespace {

constexpr std::size_t kMaxLine = 4u << 10;  // a chunk's size with its extensions, or one trailer
// The allowance for bytes around chunks (sizes, extensions, trailers), beside as many as the chunks hold.
// Without a bound, a body could be sent for ever without growing.
constexpr std::uint64_t kFreeOverhead = 16u << 10;

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20 && c != '\t') || code == 0x7f;
  });
}

bool is_return(char c) {
  return c == '\r';
}

}  // namespace

BodyReader::BodyReader(BodyForm form) : left_(form.size) {
  switch (form.kind) {
    case BodyForm::Kind::none:
      next_ = Next::nothing;
      break;
    case BodyForm::Kind::sized:
      next_ = form.size > 0 ? Next::bytes : Next::nothing;
      break;
    case BodyForm::Kind::chunked:
      next_ = Next::chunk_size;
      break;
    case BodyForm::Kind::until_close:
      next_ = Next::everything;
      break;
  }
}

std::size_t BodyReader::read(std::string_view bytes, std::string& content) {
  auto rest = bytes;
  while (step(rest, content)) {
  }
  return bytes.size() - rest.size();
}

// False if it needs more bytes, or is done.
bool BodyReader::step(std::string_view& bytes, std::string& content) {
  std::string_view line;
  switch (next_) {
    case Next::bytes:
      make_room(bytes.size(), content);
      if (!copy(bytes, content)) return false;
      next_ = Next::nothing;
      return true;
    case Next::everything:
      content.append(bytes);
      bytes = {};
      return false;
    case Next::chunk_size:
      if (!begins_with(bytes, is_hex_digit) || !take_line(bytes, line)) return false;
      begin_chunk(line);
      return true;
    case Next::chunk_bytes:
      if (!copy(bytes, content)) return false;
      next_ = Next::chunk_end;
      return true;
    case Next::chunk_end:
      if (!begins_with(bytes, is_return) || !take_line(bytes, line)) return false;
      next_ = line.empty() ? Next::chunk_size : Next::malformed;
      return true;
    case Next::trailer:
      // Trailers are ignored: as headers, they might have been refused.
      if (!take_line(bytes, line)) return false;
      if (line.empty()) next_ = Next::nothing;
      return true;
    case Next::nothing:
    case Next::malformed:
      return false;
  }
  return false;
}

// A string that grows by itself may take twice the memory of the body.
void BodyReader::make_room(std::size_t more, std::string& content) const {
  const auto all = content.size() + left_;
  const auto needed = std::min<std::uint64_t>(content.size() + more, all);
  if (needed > content.capacity())
    content.reserve(std::min<std::uint64_t>(std::max<std::uint64_t>(needed, 2 * content.capacity()), all));
}

// True if all of it was copied.
bool BodyReader::copy(std::string_view& bytes, std::string& content) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  content.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  left_ -= count;
  content_ += count;
  return left_ == 0;
}

// A line that cannot become valid is refused without waiting for its end.
bool BodyReader::begins_with(std::string_view bytes, bool (*is_right)(char)) {
  if (bytes.empty()) return false;
  if (!is_right(bytes.front())) next_ = Next::malformed;
  return !is_malformed();
}

// Gives the line without its end. False if it is incomplete or malformed.
bool BodyReader::take_line(std::string_view& bytes, std::string_view& line) {
  if (bytes.empty()) return false;
  const auto line_feed = bytes.substr(0, kMaxLine).find('\n');
  if (line_feed == std::string_view::npos) {
    const bool has_lone_return = bytes.substr(0, bytes.size() - 1).contains('\r');
    if (bytes.size() >= kMaxLine || has_lone_return) next_ = Next::malformed;
    return false;
  }
  line = bytes.substr(0, line_feed);
  if (!line.ends_with('\r') || has_control_character(line.substr(0, line.size() - 1))) {
    next_ = Next::malformed;
    return false;
  }
  line.remove_suffix(1);
  bytes.remove_prefix(line_feed + 1);
  overhead_ += line_feed + 1;
  if (overhead_ > kFreeOverhead + content_) next_ = Next::malformed;
  return !is_malformed();
}

void BodyReader::begin_chunk(std::string_view line) {
  const auto* const end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data(), end, left_, 16);
  const auto extensions = std::string_view(rest, end);
  const auto first_mark = extensions.find_first_not_of(" \t");
  const bool is_followed_well =
      extensions.empty() || (first_mark != std::string_view::npos && extensions[first_mark] == ';');
  if (error != std::errc{} || !is_followed_well)
    next_ = Next::malformed;
  else
    next_ = left_ > 0 ? Next::chunk_bytes : Next::trailer;
}

}  // namespace flowfabric::http
