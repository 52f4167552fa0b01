// Reads the body of a message from incoming bytes: of a known size, in chunks, or until the connection ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/head.h"

namespace flowfabric::http {

class BodyReader {
 public:
  explicit BodyReader(BodyForm form = {});

  // Appends the available part of the body to `content`. Returns the number of bytes consumed. Pass the rest
  // again with the bytes that follow; after the body it belongs to the next message.
  std::size_t read(std::string_view bytes, std::string& content);

  bool is_done() const { return next_ == Next::nothing; }
  bool is_malformed() const { return next_ == Next::malformed; }
  // True if the body is complete when the connection ends here.
  bool ends_at_close() const { return next_ == Next::everything || is_done(); }

 private:
  enum class Next { bytes, everything, chunk_size, chunk_bytes, chunk_end, trailer, nothing, malformed };

  bool step(std::string_view& bytes, std::string& content);
  void make_room(std::size_t more, std::string& content) const;
  bool copy(std::string_view& bytes, std::string& content);
  bool begins_with(std::string_view bytes, bool (*is_right)(char));
  bool take_line(std::string_view& bytes, std::string_view& line);
  void begin_chunk(std::string_view line);

  Next next_;
  std::uint64_t left_{0};      // of the body, or of the chunk
  std::uint64_t content_{0};   // bytes of chunks so far
  std::uint64_t overhead_{0};  // bytes around them so far: sizes, extensions, ends of lines, trailers
};

}  // namespace flowfabric::http
