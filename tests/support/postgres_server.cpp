#include "support/postgres_server.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace flowfabric::tests {

namespace {

// The exit status, or -1 if it did not even run to its end.
int run(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (auto& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t process{};
  if (posix_spawn(&process, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return -1;
  int status{};
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void run_script(const std::string& command, const std::string& folder, const std::string& option = "") {
  std::vector<std::string> words{FF_POSTGRES_SCRIPT, command, folder};
  if (!option.empty()) words.push_back(option);
  if (run(words) != 0) throw std::runtime_error("postgres-for-tests " + command + " failed; see above");
}

std::string name_of(PostgresServer::Stop how) {
  return how == PostgresServer::Stop::fast ? "fast" : "immediate";
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("no PostgreSQL server has written " + path);
  return line;
}

}  // namespace

std::string url_of_server(const std::string& folder, const std::string& database) {
  const std::string own = "/postgres?";
  auto url = first_line(folder + "/url");
  return url.replace(url.find(own), own.size(), "/" + database + "?");
}

PostgresServer::PostgresServer(Disk disk) {
  run_script("start", folder_.path(), disk == Disk::durable ? "--durable" : "");
}

PostgresServer::~PostgresServer() {
  run({FF_POSTGRES_SCRIPT, "remove", folder_.path()});
}

std::string PostgresServer::url(const std::string& database) const {
  return url_of_server(folder_.path(), database);
}

int PostgresServer::port() const {
  return std::stoi(first_line(folder_.path() + "/port"));
}

void PostgresServer::start() {
  run_script("start", folder_.path());
}

void PostgresServer::stop(Stop how) {
  run_script("stop", folder_.path(), name_of(how));
}

void PostgresServer::restart(Stop how) {
  run_script("restart", folder_.path(), name_of(how));
}

PostgresConnection::Rows PostgresServer::query(const std::string& sql, const std::string& database) const {
  return PostgresConnection(url(database)).query(sql);
}

}  // namespace flowfabric::tests
