// Quota policies: rows that every batch counts on.
//
// Locked when they are read, all batches would take turns from then until they have committed. So they are
// read without a lock, and what a batch adds to the counts is written by its very last statement, which holds
// the row only while the commit is written to disk. That statement insists that the counts stay within their
// bounds, and that everything else in the row is what the batch has read: what was decided is still right, as
// if it had been decided then. Otherwise the batch is run again, and locks the row when it reads it. So does
// one that changes anything but the counts.
#include <algorithm>

#include "model/counted_records.h"
#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

using core::AnySlot;
using core::Unit;

// Whoever locks the row when reading it may want something that a batch which is about to count holds.
constexpr const char* kPatience = "set local lock_timeout='100ms'";

bool is_count(std::string_view column) {
  return std::ranges::any_of(kCountsOfQuotaPolicy, [&](const auto& each) { return each.count == column; });
}

ColumnMask count_columns() {
  ColumnMask mask;
  std::size_t index = 0;
  for (const auto name : record_type<QuotaPolicy>().names) mask.set(index++, is_count(name));
  return mask;
}

// $1 is the row as it was read, $2 and so on what is added to each count. Fails when nothing was changed.
std::string count_statement() {
  std::string changes;
  std::string within;
  int parameter = 1;
  for (const auto& [count_column, bound_column] : kCountsOfQuotaPolicy) {
    const std::string count(count_column);
    const auto delta = "$" + std::to_string(++parameter) + "::int8";
    const auto sum = "t." + count + "+" + delta;
    const auto bound = "t." + std::string(bound_column);
    changes += (changes.empty() ? "" : ",") + count + "=" + sum;
    within += " and " + sum + ">=0 and (" + delta + "<=0 or " + bound + "=0 or " + sum + "<=" + bound + ")";
  }
  std::string here;
  std::string read;
  for (const auto name : record_type<QuotaPolicy>().names) {
    if (is_count(name)) continue;
    here += (here.empty() ? "t." : ",t.") + std::string(name);
    read += (read.empty() ? "v." : ",v.") + std::string(name);
  }
  return "with counted as (update ff_quota_policy t set " + changes +
         " from unnest($1::ff_quota_policy[]) as v where " + same_key<QuotaPolicy>("t", "v") + " and row(" +
         here + ") is not distinct from row(" + read + ")" + within +
         " returning 1) select 1/count(*) from counted";
}

std::vector<std::int64_t> counts_of(const void* policy) {
  std::vector<std::int64_t> counts;
  for (const auto& each : kCountsOfQuotaPolicy) {
    const auto* column = column_named(record_type<QuotaPolicy>().columns, each.count);
    counts.push_back(integer_of(column->type->kind, column->in(policy)));
  }
  return counts;
}

}  // namespace

// Those that are contested are locked; the others are given back.
std::vector<QuotaPolicyKey> PostgresSession::post_contested(Unit& unit, std::vector<QuotaPolicyKey> keys) {
  static const std::string sql = select_by_keys(record_type<QuotaPolicy>(), Lock::update);
  const auto contested =
      std::ranges::stable_partition(keys, [&](const auto& key) { return !contested_.locks(key); });
  const std::vector<QuotaPolicyKey> locked(contested.begin(), contested.end());
  keys.erase(contested.begin(), contested.end());
  if (locked.empty()) return keys;
  locked_policies_.insert(locked.begin(), locked.end());
  connection_->post(sql, key_parameters(locked), [&unit, locked](const Rows& found) {
    for (auto& policy : found.all<QuotaPolicy>()) {
      unit.put<QuotaPolicy>(policy.key(), std::make_shared<const QuotaPolicy>(policy));
    }
    for (const auto& key : locked) unit.put<QuotaPolicy>(key, nullptr);
  });
  return keys;
}

bool PostgresSession::is_only_counted(const AnySlot& slot) const {
  return slot.stored && !locked_policies_.contains(slot.key.as<QuotaPolicyKey>());
}

void PostgresSession::check_counted(const Unit& unit) {
  static const auto counts = count_columns();
  const auto& type = record_type<QuotaPolicy>();
  bool may_write = true;
  for (const auto* slot : unit.dirty(type.place)) {
    if (!is_only_counted(*slot)) continue;
    const bool is_counted =
        slot->changed && (changed_columns(type, slot->stored.get(), slot->changed.get()) & ~counts).none();
    if (is_counted) continue;
    contested_.add(slot->key.as<QuotaPolicyKey>());
    may_write = false;
  }
  if (may_write) return;
  throw StoreFailure{{ErrorCode::retry_exhausted, "ff_quota_policy", "The batch is run again, with locks."},
                     Retry::now};
}

std::vector<QuotaPolicyKey> PostgresSession::post_counted(const Unit& unit) {
  static const std::string sql = count_statement();
  const auto& type = record_type<QuotaPolicy>();
  std::vector<const AnySlot*> slots;
  // Also when nothing is added: who was refused must have been refused by what is still true, or whoever
  // clears the limit meanwhile would not find what waits for that.
  for (const auto* slot : unit.dirty(type.place)) {
    if (is_only_counted(*slot)) slots.push_back(slot);
  }
  std::ranges::sort(slots, [](const AnySlot* left, const AnySlot* right) { return left->key < right->key; });
  std::vector<QuotaPolicyKey> keys;
  if (!slots.empty()) connection_->post(kPatience);
  for (const auto* slot : slots) {
    keys.push_back(slot->key.as<QuotaPolicyKey>());
    const void* const read[] = {slot->stored.get()};
    auto parameters = settings_.row_types->of(type).parameters(read);
    const auto before = counts_of(slot->stored.get());
    const auto after = counts_of(slot->changed.get());
    for (std::size_t i = 0; i < before.size(); ++i) parameters.add(after[i] - before[i]);
    connection_->post(sql, parameters);
  }
  return keys;
}

}  // namespace flowfabric::store::postgres
