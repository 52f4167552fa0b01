// One connection to PostgreSQL, in libpq's pipeline mode: statements are queued with what to do with their
// rows, and one flush sends them all and hands out all answers: one round trip.
#pragma once

#include <libpq-fe.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "store/postgres/types.h"

namespace flowfabric::store::postgres {

struct ConnectionSettings {
  std::string uri;
  // A pooler hands out another backend for every transaction: nothing of a session may be relied on.
  bool pooled{false};
};

// The rows that a statement gave.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result) {}
  int size() const { return PQntuples(result_); }
  std::int64_t affected() const;

  bool is_null(int row, int column) const { return PQgetisnull(result_, row, column) != 0; }
  std::string_view bytes(int row, int column) const {
    return {PQgetvalue(result_, row, column), static_cast<std::size_t>(PQgetlength(result_, row, column))};
  }
  void read_field(int row, int column, const FieldType& type, void* field) const {
    if (is_null(row, column))
      type.clear(field);
    else
      read_value(bytes(row, column), PQfname(result_, column), type, field);
  }
  // The columns of a struct, from `first` on.
  void read_fields(int row, int first, Columns columns, void* value) const {
    for (const auto& column : columns) read_field(row, first++, *column.type, column.in(value));
  }
  template <class T>
  void read(int row, int column, T& value) const {
    read_field(row, column, kFieldType<T>, &value);
  }
  template <class T>
  T get(int row, int column) const {
    T value{};
    read(row, column, value);
    return value;
  }
  template <class Struct>
  Struct get_struct(int row, int first = 0) const {
    Struct value;
    read_fields(row, first, described_columns<Struct>(), &value);
    return value;
  }
  std::shared_ptr<void> get_record(const RecordType& type, int row, int first = 0) const {
    auto record = type.make();
    read_fields(row, first, type.columns, record.get());
    return record;
  }
  template <class Struct>
  std::vector<Struct> all() const {
    std::vector<Struct> found;
    found.reserve(static_cast<std::size_t>(size()));
    for (int row = 0; row < size(); ++row) found.push_back(get_struct<Struct>(row));
    return found;
  }

 private:
  PGresult* result_;
};

class Connection {
 public:
  using OnRows = std::function<void(const Rows&)>;

  // Throws StoreFailure with a remedy.
  explicit Connection(const ConnectionSettings& settings);

  void post(const std::string& sql, const Parameters& parameters = {}, OnRows on_rows = {});
  // Sends what is queued and does not wait; the answers come with the next flush.
  void send();
  // Sends what is queued and waits for all answers. The first error is thrown when all have been read.
  void flush();
  // One statement, at once.
  void run(const std::string& sql, const Parameters& parameters = {}, OnRows on_rows = {}) {
    post(sql, parameters, std::move(on_rows));
    flush();
  }

  bool is_broken() const { return broken_; }
  // Nothing was posted since the last flush.
  bool is_idle() const { return !unsynced_; }
  PGconn* get() { return connection_.get(); }
  std::uint64_t round_trips() const { return round_trips_; }

 private:
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  using Answer = std::unique_ptr<PGresult, Clear>;
  struct Pending {
    bool is_sync{false};
    OnRows on_rows;
  };

  const std::string& prepared(const std::string& sql);
  void post_unnamed(const std::string& sql, const Parameters& parameters, OnRows on_rows);
  void queued(int sent, OnRows on_rows);
  Answer next();
  void take_answers();
  void take_answer(const Pending& pending);
  void wait();
  [[noreturn]] void lost();

  std::unique_ptr<PGconn, Close> connection_;
  const bool pooled_;
  bool broken_{false};
  std::unordered_map<std::string, std::string> names_;  // of the prepared statements
  std::vector<std::string> fresh_;                      // prepared since the last flush
  std::uint64_t next_name_{0};
  std::deque<Pending> pending_;
  bool unsynced_{false};
  std::uint64_t round_trips_{0};
  std::optional<StoreFailure> failure_;
};

// What a statement, or the connection itself, has failed of.
StoreFailure failure_of(PGconn* connection, const PGresult* result);

}  // namespace flowfabric::store::postgres
