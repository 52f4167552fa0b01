#include "disk/trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace flowfabric::disk {

namespace {

char* map(const std::string& path, int flags, std::uint64_t& bytes) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error("cannot open " + path);
  struct stat status {};
  const bool is_new = (flags & O_CREAT) != 0;
  if (is_new && ftruncate(file, static_cast<off_t>(bytes)) != 0)
    throw std::runtime_error("cannot make " + path);
  if (fstat(file, &status) != 0) throw std::runtime_error("cannot look at " + path);
  bytes = static_cast<std::uint64_t>(status.st_size);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            (is_new ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  return static_cast<char*>(mapped);
}

}  // namespace

std::string text_of(const Event& event) {
  static constexpr const char* kWords[] = {
      "",         "start",        "create", "make folder",   "write",  "truncate", "sync begins",
      "synced",   "sync failed",  "unlink", "remove folder", "rename", "mark",     "site",
      "injected", "sync left out"};
  auto text = std::string(kWords[static_cast<std::size_t>(event.kind)]);
  if (event.file != 0) text += " of file " + std::to_string(event.file);
  if (event.kind == EventKind::truncate) return text + " to " + std::to_string(event.offset);
  if (event.kind == EventKind::write)
    return text + " at " + std::to_string(event.offset) + ", " + std::to_string(event.text.size()) + " bytes";
  return text + " " + std::string(event.text.substr(0, 200));
}

Trace Trace::make(const std::string& path) {
  std::uint64_t bytes = kTraceBytes;
  auto* const base = map(path, O_RDWR | O_CREAT | O_EXCL, bytes);
  return Trace(path, base, bytes);
}

Trace Trace::open(const std::string& path) {
  std::uint64_t bytes = 0;
  auto* const base = map(path, O_RDWR, bytes);
  Trace trace(path, base, bytes);
  trace.read();
  return trace;
}

Trace::Trace(Trace&& other) noexcept
    : path_(std::move(other.path_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      read_up_to_(other.read_up_to_),
      events_(std::move(other.events_)) {}

Trace::~Trace() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

void Trace::read() {
  if (read_up_to_ == 0) read_up_to_ = sizeof(TraceHeader);
  for (; read_up_to_ < header().end; read_up_to_ += at(read_up_to_).size) {
    const auto& event = at(read_up_to_);
    events_.push_back({read_up_to_, event.kind, (event.flags & kDurable) != 0, event.file, event.offset,
                       event.extra, text_at(read_up_to_)});
  }
}

std::size_t Trace::count(EventKind kind) const {
  return static_cast<std::size_t>(std::ranges::count(events_, kind, &Event::kind));
}

bool Trace::has_mark(char first_letter) const {
  for (std::uint64_t position = std::max<std::uint64_t>(read_up_to_, sizeof(TraceHeader));
       position < header().end; position += at(position).size) {
    const auto text = text_at(position);
    if (at(position).kind == EventKind::mark && !text.empty() && text[0] == first_letter) return true;
  }
  return false;
}

std::string Trace::name_of(std::uint32_t file) const {
  std::string name;
  for (const auto& event : events_) {
    if (event.file != file) continue;
    if (event.kind == EventKind::create) name = event.text;
    if (event.kind == EventKind::rename) name = event.text.substr(event.text.find('\0') + 1);
  }
  return name;
}

bool Trace::has_happened(EventHeader& event, const std::string& folder) const {
  namespace fs = std::filesystem;
  const std::string text(text_at(header().end));
  const auto there = [&](const std::string& name) { return fs::exists(fs::path(folder) / name); };
  switch (event.kind) {
    case EventKind::create:
    case EventKind::make_folder:
      return there(text);
    case EventKind::unlink:
    case EventKind::remove_folder:
      return !there(text);
    case EventKind::rename:
      return !there(text.substr(0, text.find('\0')));
    case EventKind::truncate:
      return fs::file_size(fs::path(folder) / name_of(event.file)) == event.offset;
    case EventKind::write: {
      // A killed process may have written some of it: whatever is there now was written.
      std::ifstream file(fs::path(folder) / name_of(event.file), std::ios::binary);
      file.seekg(static_cast<std::streamoff>(event.offset));
      file.read(reinterpret_cast<char*>(&event + 1), static_cast<std::streamsize>(event.text_size));
      event.text_size = static_cast<std::uint64_t>(file.gcount());
      event.old_size = 0;
      return event.text_size > 0;
    }
    default:
      return true;
  }
}

void Trace::settle(const std::string& folder) {
  read();
  auto& shared = *reinterpret_cast<TraceHeader*>(base_);
  if (shared.begun == shared.end) return;
  auto& event = *reinterpret_cast<EventHeader*>(base_ + shared.end);
  if (has_happened(event, folder)) shared.end += event.size;
  shared.begun = shared.end.load();
  read();
}

void Trace::add_mark(std::string_view text) {
  auto& shared = *reinterpret_cast<TraceHeader*>(base_);
  if (shared.end == 0) shared.end = sizeof(TraceHeader);
  const auto size = (sizeof(EventHeader) + text.size() + 7) / 8 * 8;
  auto& event = *reinterpret_cast<EventHeader*>(base_ + shared.end);
  event = {};
  event.size = size;
  event.kind = EventKind::mark;
  event.text_size = text.size();
  std::memcpy(&event + 1, text.data(), text.size());
  shared.end += size;
  shared.begun = shared.end.load();
}

void Trace::copy_to(const std::string& path) const {
  std::ofstream(path, std::ios::binary).write(base_, static_cast<std::streamsize>(header().end));
}

}  // namespace flowfabric::disk
