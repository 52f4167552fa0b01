// Secrets that lie in files are read again when these change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/config.h"

namespace flowfabric::server {

class SecretFiles {
 public:
  explicit SecretFiles(FileReader read_file = read_text_file) : read_file_(std::move(read_file)) {}

  // Calls `use` with the new text whenever the file changes; what it returns is for the log.
  using Use = std::function<Result<std::string>(const std::string& text)>;
  void watch(std::string path, Use use);

  // Looks at all of them. What an operator should know: a new secret is in force, or is not, and why.
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

// The text of a secret's file. Editors and `echo` put an end of line behind it.
std::string without_line_end(std::string text);

}  // namespace flowfabric::server
