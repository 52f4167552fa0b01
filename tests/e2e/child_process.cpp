#include "e2e/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace flowfabric::e2e {

ChildProcess::ChildProcess(std::vector<std::string> arguments, Environment environment) {
  int ends[2];
  // Servers that are started meanwhile must not keep the pipe open.
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  arguments.insert(arguments.begin(), "tests");
  arguments.push_back(std::to_string(ends[1]));
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("fork");
  if (process_ == 0) run(std::move(arguments), environment, ends[1]);
  close(ends[1]);
  // The pipe holds little: it is read all the time, so that the child never waits for us.
  reader_ = std::thread([this, end = ends[0]] { listen(end); });
}

ChildProcess::~ChildProcess() {
  end_by(SIGKILL);
}

void ChildProcess::run(std::vector<std::string> arguments, const Environment& environment, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fcntl(pipe, F_SETFD, 0);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (auto& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  _exit(127);
}

void ChildProcess::listen(int pipe) {
  std::string buffer(1 << 16, '\0');
  for (ssize_t got = 0; (got = read(pipe, buffer.data(), buffer.size())) > 0;) {
    std::lock_guard lock(mutex_);
    said_.append(buffer, 0, static_cast<std::size_t>(got));
    speaking_ = true;
  }
  close(pipe);
  hung_up_ = true;
}

std::string ChildProcess::take_lines() {
  std::lock_guard lock(mutex_);
  const auto end = said_.rfind('\n');
  if (end == said_.npos) return "";
  auto lines = said_.substr(0, end + 1);
  said_.erase(0, end + 1);
  return lines;
}

void ChildProcess::end_by(int signal) {
  if (process_ < 0) return;
  ::kill(process_, signal);
  waitpid(process_, &status_, 0);
  process_ = -1;
  reader_.join();
}

void ChildProcess::wait() {
  end_by(0);
}

void ChildProcess::kill() {
  end_by(SIGKILL);
}

void ChildProcess::terminate() {
  end_by(SIGTERM);
}

bool ChildProcess::was_killed() const {
  return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL;
}

int ChildProcess::exit_code() const {
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

bool ChildProcess::ended_well() const {
  return exit_code() == 0;
}

}  // namespace flowfabric::e2e
