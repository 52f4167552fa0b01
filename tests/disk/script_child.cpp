#include "disk/script_child.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <sstream>
#include <thread>

#include "disk/marks.h"

namespace flowfabric::disk {

namespace {

class Script {
 public:
  explicit Script(std::string folder) : folder_(std::move(folder)) {}

  bool run(const std::string& line) {
    std::istringstream words(line);
    std::string call, name;
    words >> call >> name;
    const auto path = folder_ + "/" + name;
    if (call == "write") {
      off_t offset{};
      std::size_t count{};
      char letter{};
      words >> offset >> count >> letter;
      const std::string bytes(count, letter);
      return with(path, O_RDWR | O_CREAT, [&](int file) {
        return pwrite(file, bytes.data(), count, offset) == static_cast<ssize_t>(count);
      });
    }
    if (call == "truncate") {
      off_t size{};
      words >> size;
      return with(path, O_RDWR, [&](int file) { return ftruncate(file, size) == 0; });
    }
    if (call == "sync") return with(path, O_RDWR, [](int file) { return fdatasync(file) == 0; });
    if (call == "sync_twice") return sync_twice(path);
    if (call == "sync_folder") return with(path, O_RDONLY, [](int file) { return fsync(file) == 0; });
    if (call == "unlink") return unlink(path.c_str()) == 0;
    if (call == "mkdir") return mkdir(path.c_str(), 0700) == 0;
    if (call == "rename") {
      words >> name;
      return rename(path.c_str(), (folder_ + "/" + name).c_str()) == 0;
    }
    mark(line.substr(5));
    return true;
  }

 private:
  // At the same time, or nearly so.
  static bool sync_twice(const std::string& path) {
    std::barrier both_ready(2);
    bool other_is_done = false;
    const auto sync = [&](int file) {
      both_ready.arrive_and_wait();
      return fdatasync(file) == 0;
    };
    std::thread other([&] { other_is_done = with(path, O_RDWR, sync); });
    const bool is_done = with(path, O_RDWR, sync);
    other.join();
    return is_done && other_is_done;
  }

  template <class Use>
  static bool with(const std::string& path, int flags, Use use) {
    const int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (file < 0) return false;
    const bool is_done = use(file);
    close(file);
    return is_done;
  }

  const std::string folder_;
};

}  // namespace

int run_script(const std::string& folder, const std::string& script) {
  Script running(folder);
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (!running.run(line)) mark("failed " + line);
  }
  return 0;
}

}  // namespace flowfabric::disk
