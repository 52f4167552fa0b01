#include "e2e/serving.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace flowfabric::e2e {

using std::chrono::steady_clock;

Serving::Serving(const std::string& store_url, const std::vector<std::string>& more_arguments,
                 const std::string& address, std::size_t open_files) {
  std::vector<std::string> arguments{FLOWFABRIC_PROGRAM, "serve", "--listen", address, "--store", store_url};
  arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDERR_FILENO);
    const rlimit limit{open_files, open_files};
    if (open_files > 0) setrlimit(RLIMIT_NOFILE, &limit);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  close(ends[1]);
  reader_ = std::thread([this, end = ends[0]] { listen(end); });
  const auto until = steady_clock::now() + std::chrono::seconds(30);
  const std::string mark = "listens on ";
  while (url_.empty() && steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto text = said();
    const auto at = text.find(mark);
    const auto end = text.find(", store", at);
    if (at != text.npos && end != text.npos) url_ = text.substr(at + mark.size(), end - at - mark.size());
  }
  if (url_.empty()) {
    signal(SIGKILL);
    wait(std::chrono::seconds(10));
    reader_.join();
    throw std::runtime_error("it does not listen: " + said_);
  }
}

Serving::~Serving() {
  if (!ended_) {
    signal(SIGKILL);
    wait(std::chrono::seconds(10));
  }
  if (reader_.joinable()) reader_.join();
}

std::string Serving::said() const {
  std::lock_guard lock(mutex_);
  return said_;
}

std::string Serving::command_line() const {
  std::ifstream file("/proc/" + std::to_string(process_) + "/cmdline");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint16_t Serving::port() const {
  return static_cast<std::uint16_t>(std::stoi(url_.substr(url_.rfind(':') + 1)));
}

std::size_t Serving::memory() const {
  std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::chrono::milliseconds Serving::processor_time() const {
  std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name, which may hold anything, ends with the last bracket; 12th and 13th behind it are the times.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  std::int64_t user = 0;
  std::int64_t system = 0;
  fields >> user >> system;
  return std::chrono::milliseconds((user + system) * 1000 / sysconf(_SC_CLK_TCK));
}

void Serving::listen(int pipe) {
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(pipe, part.data(), part.size())) > 0;) {
    std::lock_guard lock(mutex_);
    said_.append(part.data(), static_cast<std::size_t>(n));
  }
  close(pipe);
}

void Serving::signal(int number) const {
  if (!ended_) kill(process_, number);
}

std::optional<int> Serving::wait(std::chrono::milliseconds time) {
  const auto until = steady_clock::now() + time;
  while (steady_clock::now() < until) {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) == process_) {
      ended_ = true;
      return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::nullopt;
}

}  // namespace flowfabric::e2e
