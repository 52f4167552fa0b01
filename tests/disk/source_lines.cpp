#include "disk/source_lines.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

namespace flowfabric::disk {

namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 512> some{};
  while (pipe && std::fgets(some.data(), some.size(), pipe.get()) != nullptr) output += some.data();
  return output;
}

// "flowfabric::store::sqlite::Writer::sync() at writer.cpp:190": without what all have in common.
std::string line_of_program(const std::string& offset) {
  static std::array<char, 4096> path{};
  if (path[0] == '\0' && readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) return offset;
  auto line =
      output_of("addr2line -p -f -C -s -e '" + std::string(path.data()) + "' 0x" + offset + " 2>/dev/null");
  if (line.empty() || line.starts_with('?')) return "+" + offset;
  line.erase(line.find_last_not_of('\n') + 1);
  const auto at = line.rfind(" at ");
  const auto arguments = line.find('(');
  if (at == line.npos) return line;
  auto name = line.substr(0, std::min(arguments, at));
  if (const auto scope = name.rfind("sqlite::"); scope != name.npos) name.erase(0, scope + 8);
  return name + " (" + line.substr(at + 4) + ")";
}

// Only what the library exports has a name.
std::string name_in_sqlite(const std::string& offset) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&sqlite3_libversion), &info) == 0) return "";
  const auto address = reinterpret_cast<std::uint64_t>(info.dli_fbase) + std::stoull(offset, nullptr, 16);
  void* extra = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(address), &info, &extra, RTLD_DL_SYMENT) == 0 || extra == nullptr)
    return "";
  const auto* symbol = static_cast<const ElfW(Sym)*>(extra);
  const bool is_inside = info.dli_saddr != nullptr &&
                         address < reinterpret_cast<std::uint64_t>(info.dli_saddr) + symbol->st_size;
  return is_inside && info.dli_sname != nullptr ? info.dli_sname : "";
}

}  // namespace

std::string describe_site(const std::string& text) {
  std::istringstream words(text);
  std::string described, word;
  words >> described;
  while (words >> word) {
    const auto offset = word.substr(word.find('+') + 1);
    const auto name = word.starts_with("exe") ? line_of_program(offset) : name_in_sqlite(offset);
    if (!name.empty()) described += " < " + name;
  }
  return described;
}

}  // namespace flowfabric::disk
