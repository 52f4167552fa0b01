#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace flowfabric::cli {

// ---- options ----------------------------------------------------------------------------------------------

Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::in_range(std::int64_t least, std::int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}
Option& Option::one_of(const std::vector<std::string>& texts) {
  option_->check(CLI::IsMember(texts));
  return *this;
}
Option& Option::check(std::string (*problem)(std::string& text)) {
  option_->check(CLI::Validator(problem, ""));
  return *this;
}
Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}
Option& Option::variable(const std::string& name) {
  option_->envname(name);
  return *this;
}
Option& Option::group(const std::string& name) {
  option_->group(name);
  return *this;
}
Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}
Option& Option::one_at_a_time() {
  option_->allow_extra_args(false);
  return *this;
}

bool Option::is_called(const std::string& name) const {
  return option_->check_name(name);
}
bool Option::takes_value() const {
  return option_->get_items_expected_min() > 0;
}
std::string Option::group() const {
  return option_->get_group();
}
std::string Option::help() const {
  return option_->get_description();
}
const std::vector<std::string>& Option::long_names() const {
  return option_->get_lnames();
}

// ---- commands ---------------------------------------------------------------------------------------------

Command::Command(const std::string& help, const std::string& name)
    : own_(std::make_unique<CLI::App>(help, name)), app_(own_.get()) {}
Command::Command(Command* parent, const std::string& name, const std::string& help)
    : app_(parent->app_->add_subcommand(name, help)) {}
Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& help) {
  return commands_.emplace_back(std::make_unique<Command>(this, name, help)).get();
}

template <class Value>
Option Command::add_option(const std::string& name, Value& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::int32_t>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::uint32_t>&, const std::string&);

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}
void Command::set_version_flag(const std::string& name, const std::string& version) {
  app_->set_version_flag(name, version);
}
void Command::require_subcommand(std::size_t least, std::size_t most) {
  app_->require_subcommand(least, most);
}
void Command::footer(const std::string& text) {
  app_->footer(text);
}
void Command::group(const std::string& name) {
  app_->group(name);
}
void Command::callback(std::function<void()> call) {
  app_->callback(std::move(call));
}

const std::string& Command::name() const {
  return app_->get_name();
}
std::string Command::help() const {
  return app_->get_description();
}
std::vector<Option> Command::options() const {
  std::vector<Option> all;
  for (auto* option : app_->get_options()) all.emplace_back(option);
  return all;
}
std::optional<Option> Command::find_option(const std::string& name) const {
  auto* option = app_->get_option_no_throw(name);
  return option ? std::optional(Option(option)) : std::nullopt;
}
bool Command::has_given_subcommand() const {
  return !app_->get_subcommands().empty();
}

std::optional<Command::Ended> Command::parse(std::vector<std::string> words) {
  try {
    std::ranges::reverse(words);  // as CLI11 wants them
    app_->parse(std::move(words));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return Ended{app_->exit(error) != 0};
  }
}

}  // namespace flowfabric::cli
