// Commands, their options and arguments. CLI11 reads them; only command_line.cpp includes it, because
// compiling it takes longer than all the rest of a command.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace flowfabric::cli {

// An option (`--name`) or an argument (`name`) of a command. Copies are the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();
  Option& in_range(std::int64_t least, std::int64_t most);
  Option& positive();
  Option& one_of(const std::vector<std::string>& texts);
  // `problem` says what is wrong with a text, or nothing.
  Option& check(std::string (*problem)(std::string& text));
  Option& needs(const Option& other);
  Option& variable(const std::string& name);  // of the environment; empty: none
  Option& group(const std::string& name);     // in the help
  Option& show_default();                     // the value that the variable has now
  Option& one_at_a_time();                    // of a list: so that an argument may follow it

  bool is_called(const std::string& name) const;
  bool takes_value() const;
  std::string group() const;
  std::string help() const;
  const std::vector<std::string>& long_names() const;  // without dashes

 private:
  CLI::Option* option_;
};

class Command {
 public:
  // The program itself.
  Command(const std::string& help, const std::string& name);
  Command(Command* parent, const std::string& name, const std::string& help);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(const std::string& name, const std::string& help);
  // `Value`: std::string, std::vector<std::string>, int, std::int64_t, std::uint64_t, or optional:
  // std::string, std::int32_t, std::uint32_t. It must outlive the parsing.
  template <class Value>
  Option add_option(const std::string& name, Value& value, const std::string& help);
  Option add_flag(const std::string& name, bool& value, const std::string& help);
  void set_version_flag(const std::string& name, const std::string& version);
  void require_subcommand(std::size_t least, std::size_t most);
  void require_subcommand() { require_subcommand(1, 1); }
  void footer(const std::string& text);
  void group(const std::string& name);  // in the help of the command above
  void callback(std::function<void()> call);

  const std::string& name() const;
  std::string help() const;
  const std::vector<std::unique_ptr<Command>>& commands() const { return commands_; }
  std::vector<Option> options() const;
  std::optional<Option> find_option(const std::string& name) const;
  bool has_given_subcommand() const;  // once it is parsed

  // Calls the callback of the command that is chosen. Absent: all is well; else help or an error was printed,
  // and whether it was an error is told.
  struct Ended {
    bool is_error{};
  };
  std::optional<Ended> parse(std::vector<std::string> words);

  CLI::App& parser() { return *app_; }

 private:
  std::unique_ptr<CLI::App> own_;
  CLI::App* app_;
  std::vector<std::unique_ptr<Command>> commands_;
};

}  // namespace flowfabric::cli
