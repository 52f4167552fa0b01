// JSON forms that several routes share.
#pragma once

#include <string_view>

#include "api/fields.h"
#include "api/json.h"
#include "flowfabric/engine.h"

namespace flowfabric::api {

// ---- read -------------------------------------------------------------------------------------------------

// The keys of create. `default_namespace` applies if the request names none.
CreateExecution read_create(const Fields& fields, std::string_view default_namespace);
// `input`, `input_base64`, or the reference's array of integers; absent: none of them.
Fields::Payload read_payload(const Fields& fields, std::string_view array_name, std::string_view json_name,
                             std::string_view base64_name);
LeaseFence read_fence(const Fields& fields);
// The filter of a listing, from a query or an object.
ExecutionFilter read_filter(const Query& query);
ExecutionFilter read_filter(const Fields& fields);
std::map<std::string, std::optional<std::string>> read_tag_changes(const Fields& fields);
std::uint32_t read_limit(const Query& query, std::uint32_t otherwise, std::uint32_t least,
                         std::uint32_t most);

// ---- written ----------------------------------------------------------------------------------------------

void write_state(JsonWriter& out, const StateVector& state);
void write_summary(JsonWriter& out, const ExecutionSummary& summary);
void write_attempt(JsonWriter& out, const AttemptSnapshot& attempt);
void write_creation(JsonWriter& out, const Creation& creation);
// A listed signal also shows its effect; a resumed worker knows it.
void write_resume_signal(JsonWriter& out, const ResumeSignal& signal,
                         const std::optional<SignalEffect>& effect = std::nullopt);
void write_waitpoint(JsonWriter& out, const WaitpointView& waitpoint);
void write_counts(JsonWriter& out, const std::map<PublicState, std::int64_t>& counts);
void write_budget(JsonWriter& out, const BudgetStatus& budget);
// Writes the members of the answer to a usage report.
void write_usage(JsonWriter& out, const UsageReport& report);
void write_grant(JsonWriter& out, const ClaimGrant& grant);
void write_store_report(JsonWriter& out, const StoreReport& report);

// `"x": "word"`
template <class Enum>
void write_word(JsonWriter& out, std::string_view name, Enum value) {
  out.field(name, enum_name(value));
}
template <class Enum>
void write_word(JsonWriter& out, std::string_view name, const std::optional<Enum>& value) {
  if (value)
    write_word(out, name, *value);
  else
    out.key(name).null();
}
// Writes null for an empty text.
void write_text_or_null(JsonWriter& out, std::string_view name, const std::string& text);

}  // namespace flowfabric::api
