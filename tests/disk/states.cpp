#include "disk/states.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace flowfabric::disk {

namespace fs = std::filesystem;

namespace {

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

}  // namespace

void write_files(const Content& content, const std::string& folder) {
  for (const auto& [path, bytes] : content) {
    const auto full = fs::path(folder) / path;
    if (path.ends_with('/')) {
      fs::create_directories(full);
      continue;
    }
    std::ofstream(full, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

Content read_files(const std::string& folder) {
  Content content;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    auto path = fs::relative(entry.path(), folder).string();
    if (!is_watched_name(path)) continue;
    if (entry.is_directory()) {
      content[path + "/"];
      continue;
    }
    auto& bytes = content[path];
    bytes.resize(entry.file_size());
    std::ifstream(entry.path(), std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  return content;
}

// ---- going through the trace ----

void Disk::advance_to(std::size_t event) {
  for (; next_ < std::min(event, trace_.events().size()); ++next_) apply(next_, trace_.events()[next_]);
}

void Disk::apply(std::size_t index, const Event& event) {
  switch (event.kind) {
    case EventKind::create:
    case EventKind::make_folder:
    case EventKind::unlink:
    case EventKind::remove_folder:
    case EventKind::rename:
      return add_name(index, event);
    case EventKind::write:
    case EventKind::truncate: {
      auto& file = files_[event.file];
      file.changes.push_back({index, event.kind == EventKind::truncate, event.offset, event.text,
                              event.is_durable ? Fate::durable : Fate::pending});
      return fold(file);
    }
    case EventKind::sync_begin:
      syncs_[event.position] = index;
      return;
    case EventKind::sync_end:
    case EventKind::sync_failed: {
      const auto begin = syncs_.extract(event.extra);
      return finish_sync(event, begin.mapped(), event.kind == EventKind::sync_failed);
    }
    default:
      return;
  }
}

void Disk::add_name(std::size_t index, const Event& event) {
  NameChange change{index, event.kind, event.file, std::string(event.text), "", {}, Fate::pending};
  if (event.kind == EventKind::rename) {
    const auto middle = change.path.find('\0');
    change.to = change.path.substr(middle + 1);
    change.path.resize(middle);
    change.unsynced.insert(folder_of(change.to));
  }
  change.unsynced.insert(folder_of(change.path));
  if (event.kind == EventKind::create) paths_[event.file] = change.path;
  if (event.kind == EventKind::create) files_[event.file];
  if (event.is_durable) change.fate = Fate::durable;
  name_changes_.push_back(std::move(change));
  fold_names();
}

void Disk::finish_sync(const Event& end, std::size_t begin, bool has_failed) {
  if (end.file != 0) {
    auto& file = files_[end.file];
    for (auto& change : file.changes) {
      if (change.event < begin && change.fate == Fate::pending)
        change.fate = has_failed ? Fate::lost : Fate::durable;
    }
    return fold(file);
  }
  const std::string folder(end.text);
  for (auto& change : name_changes_) {
    if (change.event > begin || change.fate != Fate::pending || !change.unsynced.contains(folder)) continue;
    // A file system keeps its own records that it has not written yet.
    if (has_failed) continue;
    change.unsynced.erase(folder);
    if (change.unsynced.empty()) change.fate = Fate::durable;
  }
  fold_names();
}

void Disk::fold_names() {
  while (!name_changes_.empty() && name_changes_.front().fate == Fate::durable) {
    apply(name_changes_.front(), names_);
    name_changes_.pop_front();
  }
}

void Disk::apply(const NameChange& change, Names& names) {
  switch (change.kind) {
    case EventKind::create:
      names.files[change.path] = change.file;
      break;
    case EventKind::unlink:
      names.files.erase(change.path);
      break;
    case EventKind::make_folder:
      names.folders.insert(change.path);
      break;
    case EventKind::remove_folder:
      names.folders.erase(change.path);
      break;
    default:
      // The new name of a file whose creation was lost is there all the same: it was written later.
      names.files.erase(change.path);
      names.files[change.to] = change.file;
  }
}

void Disk::apply(const Change& change, std::string& bytes) {
  if (change.is_truncation) {
    bytes.resize(change.offset);
    return;
  }
  if (change.bytes.empty()) return;
  bytes.resize(std::max<std::size_t>(bytes.size(), change.offset + change.bytes.size()));
  std::memcpy(bytes.data() + change.offset, change.bytes.data(), change.bytes.size());
}

void Disk::fold(File& file) {
  while (!file.changes.empty() && file.changes.front().fate == Fate::durable) {
    apply(file.changes.front(), file.base);
    file.changes.pop_front();
  }
}

std::size_t Disk::pending() const {
  auto count = name_changes_.size();
  for (const auto& [id, file] : files_) count += file.changes.size();
  return count;
}

// ---- one state ----

std::string Disk::path_of(std::uint32_t file) const {
  const auto path = paths_.find(file);
  return path == paths_.end() ? "" : path->second;
}

namespace {

// The sectors of a change, of which some are there.
struct Sectors {
  std::uint64_t first;
  std::vector<bool> are_there;
};

}  // namespace

// A sector is written as a whole: where a later change is there, so are all before it.
std::string Disk::content_of(std::uint32_t id, const File& file, const Chooser& chooser) const {
  const auto sector = chooser.sector_bytes();
  std::vector<Sectors> chosen(file.changes.size());
  std::set<std::uint64_t> overwritten;
  for (std::size_t i = file.changes.size(); i-- > 0;) {
    const auto& change = file.changes[i];
    if (change.is_truncation) {
      chosen[i].are_there = {change.fate == Fate::durable || chooser.has({change.event, id, 0, 0, 0})};
      if (chosen[i].are_there[0])
        overwritten.erase(overwritten.lower_bound(change.offset / sector), overwritten.end());
      continue;
    }
    chosen[i].first = change.offset / sector;
    const auto last = (change.offset + change.bytes.size() - 1) / sector;
    for (auto at = chosen[i].first; at <= last; ++at) {
      const bool is_there = change.fate == Fate::durable || overwritten.contains(at) ||
                            chooser.has({change.event, id, at, chosen[i].first, last});
      chosen[i].are_there.push_back(is_there);
      if (is_there) overwritten.insert(at);
    }
  }
  auto bytes = file.base;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto& change = file.changes[i];
    if (change.is_truncation && chosen[i].are_there[0]) apply(change, bytes);
    if (change.is_truncation) continue;
    for (std::size_t j = 0; j < chosen[i].are_there.size(); ++j) {
      if (!chosen[i].are_there[j]) continue;
      const auto begin = std::max(change.offset, (chosen[i].first + j) * sector);
      const auto end = std::min(change.offset + change.bytes.size(), (chosen[i].first + j + 1) * sector);
      apply(
          {change.event, false, begin, change.bytes.substr(begin - change.offset, end - begin), change.fate},
          bytes);
    }
  }
  return bytes;
}

Disk::Names Disk::names_of(const Chooser& chooser) const {
  auto names = names_;
  for (const auto& change : name_changes_) {
    if (change.fate == Fate::durable || chooser.has_name(change.event)) apply(change, names);
  }
  return names;
}

Content Disk::state(const Choice& choice) const {
  std::vector<Candidate> candidates;
  for (const auto& [id, file] : files_) {
    for (const auto& change : file.changes) {
      if (change.fate == Fate::durable) continue;
      candidates.push_back({change.event, id, kind_of_file(path_of(id), false)});
    }
  }
  for (const auto& change : name_changes_) {
    if (change.fate != Fate::durable) candidates.push_back({change.event, 0, "folder"});
  }
  const Chooser chooser(choice, std::move(candidates));
  const auto names = names_of(chooser);
  Content content;
  for (const auto& folder : names.folders) content[folder + "/"];
  for (const auto& [path, id] : names.files) {
    const auto folder = folder_of(path);
    if (!folder.empty() && !names.folders.contains(folder)) continue;
    content[path] = content_of(id, files_.at(id), chooser);
  }
  return content;
}

}  // namespace flowfabric::disk
