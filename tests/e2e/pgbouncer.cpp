#include "e2e/pgbouncer.h"

#include <pwd.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>

#include "e2e/waiting.h"

namespace flowfabric::e2e {

namespace {

// Names the socket; each has a folder of its own.
constexpr const char* kPort = "6432";
// It refuses to stay root.
constexpr const char* kUser = "postgres";

bool is_root() {
  return geteuid() == 0;
}

std::string program() {
  const std::string usual = "/usr/sbin/pgbouncer";  // not on everybody's path
  return access(usual.c_str(), X_OK) == 0 ? usual : "pgbouncer";
}

}  // namespace

PgBouncer::PgBouncer(const tests::PostgresServer& server, int pool_size) {
  write_settings(server, pool_size);
  start();
  if (!wait_until([this] { return answers(); }, std::chrono::seconds(10))) {
    throw std::runtime_error("pgbouncer does not answer");
  }
}

PgBouncer::~PgBouncer() {
  kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
}

void PgBouncer::write_settings(const tests::PostgresServer& server, int pool_size) const {
  std::ofstream settings(folder_.file("pgbouncer.ini"));
  settings << "[databases]\n"
           << "postgres = host=127.0.0.1 port=" << server.port() << " user=postgres\n"
           << "[pgbouncer]\n"
           << "listen_port = " << kPort << "\n"
           << "unix_socket_dir = " << folder_.path() << "\n"
           << "auth_type = any\n"
           << "pool_mode = transaction\n"
           << "default_pool_size = " << pool_size << "\n";
  if (!is_root()) return;
  settings << "user = " << kUser << "\n";
  const auto* user = getpwnam(kUser);
  if (user == nullptr || chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) != 0) {
    throw std::runtime_error("no user for pgbouncer");
  }
}

// The time limit ends it even if the test is gone.
void PgBouncer::start() {
  std::vector<std::string> command{"timeout", "300", program(), "--quiet", folder_.file("pgbouncer.ini")};
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  if (posix_spawnp(&process_, words[0], nullptr, nullptr, words.data(), environ) != 0) {
    throw std::runtime_error("cannot start pgbouncer");
  }
}

bool PgBouncer::answers() const {
  try {
    const auto plain = url();
    tests::PostgresConnection(plain.substr(0, plain.find("&pooler"))).query("select 1");
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string PgBouncer::url() const {
  return "postgres://postgres@/postgres?host=" + folder_.path() + "&port=" + kPort + "&pooler=transaction";
}

}  // namespace flowfabric::e2e
