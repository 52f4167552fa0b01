#include "disk/recorder/sites.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace flowfabric::disk {

namespace {

constexpr int kMostFrames = 48;
// This many frames of the program itself tell one place from another.
constexpr std::size_t kFramesOfProgram = 3;

enum class Module { recorder, program, sqlite, other };

const void* base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

struct Frame {
  Module module;
  std::uint64_t offset;
};

Frame frame_of(void* address) {
  static const void* const recorder = base_of(reinterpret_cast<const void*>(&frame_of));
  static const void* const program = base_of(reinterpret_cast<const void*>(getauxval(AT_ENTRY)));
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fbase == nullptr) return {Module::other, 0};
  // The stack holds the address that the call returns to.
  const auto offset =
      reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(info.dli_fbase) - 1;
  if (info.dli_fbase == recorder) return {Module::recorder, offset};
  if (info.dli_fbase == program) return {Module::program, offset};
  const bool is_sqlite = info.dli_fname != nullptr && std::strstr(info.dli_fname, "libsqlite3") != nullptr;
  return {is_sqlite ? Module::sqlite : Module::other, offset};
}

// Up to the outermost call of SQLite, and a little further.
std::vector<Frame> frames_of_caller() {
  void* addresses[kMostFrames];
  const int count = backtrace(addresses, kMostFrames);
  std::vector<Frame> frames;
  std::size_t inner = 0;
  for (int i = 0; i < count; ++i) {
    const auto frame = frame_of(addresses[i]);
    if (frame.module != Module::program && frame.module != Module::sqlite) continue;
    frames.push_back(frame);
    if (frame.module == Module::sqlite) inner = frames.size();
  }
  if (frames.size() > inner + kFramesOfProgram) frames.resize(inner + kFramesOfProgram);
  return frames;
}

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace

void prepare_sites() {
  void* addresses[4];
  backtrace(addresses, 4);
}

Site site_of_caller(const char* kind_of_file) {
  std::string text = kind_of_file;
  for (const auto& frame : frames_of_caller()) {
    char word[40];
    std::snprintf(word, sizeof word, " %s+%llx", frame.module == Module::sqlite ? "sqlite" : "exe",
                  static_cast<unsigned long long>(frame.offset));
    text += word;
  }
  return {hash_of(text), text};
}

}  // namespace flowfabric::disk
