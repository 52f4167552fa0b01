// Secrets in files, which are read again when the files change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/config.h"

namespace flowfabric::server {

class SecretFiles {
 public:
  explicit SecretFiles(FileReader read_file = read_text_file) : read_file_(std::move(read_file)) {}

  // Called with the new text whenever the file changes; the returned text goes to the log.
  using Use = std::function<Result<std::string>(const std::string& text)>;
  void watch(std::string path, Use use);

  // Checks all files. Returns a remark for the operator for each new secret that is in force, or could not be
  // used.
  std::vector<Result<std::string>> look();

 private:
  struct Watched {
    std::string path;
    Use use;
    std::string stamp;
  };
  Result<std::string> use_again(const Watched& file) const;

  const FileReader read_file_;
  std::vector<Watched> files_;
};

// The text of a secret's file without the end of line that editors and `echo` add.
std::string without_line_end(std::string text);

}  // namespace flowfabric::server
