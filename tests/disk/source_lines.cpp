#include "disk/source_lines.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
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
std::string shortened(const std::string& line, const std::string& offset) {
  if (line.empty() || line.starts_with('?')) return "+" + offset;
  const auto at = line.rfind(" at ");
  const auto arguments = line.find('(');
  if (at == line.npos) return line;
  auto name = line.substr(0, std::min(arguments, at));
  if (const auto scope = name.rfind("sqlite::"); scope != name.npos) name.erase(0, scope + 8);
  return name + " (" + line.substr(at + 4) + ")";
}

// By offset. All at once, because reading what the compiler says of a program takes long.
std::map<std::string, std::string> lines_of_program(const std::set<std::string>& offsets) {
  std::map<std::string, std::string> lines;
  std::array<char, 4096> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) path[0] = '\0';  // and no line is known
  auto command = "addr2line -p -f -C -s -e '" + std::string(path.data()) + "'";
  for (const auto& offset : offsets) command += " 0x" + offset;
  std::istringstream output(output_of(command + " 2>/dev/null"));
  for (const auto& offset : offsets) {
    std::string line;
    std::getline(output, line);
    lines[offset] = shortened(line, offset);
  }
  return lines;
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

std::string offset_of(const std::string& word) {
  return word.substr(word.find('+') + 1);
}

}  // namespace

std::vector<std::string> describe_sites(const std::vector<std::string>& texts) {
  std::set<std::string> offsets;
  std::string word;
  for (const auto& text : texts) {
    std::istringstream words(text);
    while (words >> word) {
      if (word.starts_with("exe")) offsets.insert(offset_of(word));
    }
  }
  const auto lines = lines_of_program(offsets);
  std::vector<std::string> described;
  for (const auto& text : texts) {
    std::istringstream words(text);
    words >> described.emplace_back();
    while (words >> word) {
      const auto offset = offset_of(word);
      const auto name = word.starts_with("exe") ? lines.at(offset) : name_in_sqlite(offset);
      if (!name.empty()) described.back() += " < " + name;
    }
  }
  return described;
}

}  // namespace flowfabric::disk
