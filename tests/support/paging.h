// Walking a listing page by page.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "flowfabric/listing.h"

namespace flowfabric::tests {

// Asks for page after page until there is no cursor. A page may be short or even empty although more follow.
template <class Request, class Ask>
std::vector<typename Request::Answer> pages_of(Request request, Ask&& ask) {
  std::vector<typename Request::Answer> pages;
  do {
    if (pages.size() == 10'000) throw std::runtime_error("the listing does not end");
    pages.push_back(ask(request));
    request.cursor = pages.back().next_cursor.value_or("");
  } while (pages.back().next_cursor);
  return pages;
}

// The entries of all pages, e.g. entries_of(pages, &ExecutionPage::executions).
template <class Page, class Entry>
std::vector<Entry> entries_of(const std::vector<Page>& pages, std::vector<Entry> Page::*entries) {
  std::vector<Entry> all;
  for (const auto& page : pages) all.insert(all.end(), (page.*entries).begin(), (page.*entries).end());
  return all;
}

template <class Page, class Entry>
std::vector<std::size_t> page_sizes(const std::vector<Page>& pages, std::vector<Entry> Page::*entries) {
  std::vector<std::size_t> sizes;
  for (const auto& page : pages) sizes.push_back((page.*entries).size());
  return sizes;
}

template <class Entry>
std::vector<ExecutionId> ids_of(const std::vector<Entry>& entries) {
  std::vector<ExecutionId> ids;
  for (const auto& entry : entries) ids.push_back(entry.execution_id);
  return ids;
}

}  // namespace flowfabric::tests
