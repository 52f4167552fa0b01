#include "server/secret_files.h"

#include "http/file_stamp.h"

namespace flowfabric::server {

std::string without_line_end(std::string text) {
  text.erase(text.find_last_not_of("\r\n") + 1);
  return text;
}

void SecretFiles::watch(std::string path, Use use) {
  auto stamp = http::file_stamp(path);
  files_.push_back({std::move(path), std::move(use), std::move(stamp)});
}

Result<std::string> SecretFiles::use_again(const Watched& file) const {
  const auto text = read_file_(file.path);
  if (!text) return std::unexpected(text.error());
  return file.use(without_line_end(*text));
}

std::vector<Result<std::string>> SecretFiles::look() {
  std::vector<Result<std::string>> news;
  for (auto& file : files_) {
    // The stamp is taken first, so that a file that changes during the read is read again.
    auto stamp = http::file_stamp(file.path);
    if (stamp == file.stamp) continue;
    file.stamp = std::move(stamp);
    news.push_back(use_again(file));
  }
  return news;
}

}  // namespace flowfabric::server
