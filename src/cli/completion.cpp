// `flowfabric completion`: scripts for shells, generated from the parser's own commands and options.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/failure.h"

namespace flowfabric::cli {

namespace {

struct Word {
  std::string text;
  std::string help;
};

// The continuations of one command: its subcommands and options.
struct Place {
  std::string path;  // "/flow/submit"; empty: the program itself
  std::vector<Word> commands;
  std::vector<Word> options;
};

std::string one_line(std::string text) {
  for (auto& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

void collect(const Command& app, const std::string& path, std::vector<Place>& places) {
  Place place{path, {}, {}};
  for (const auto& option : app.options()) {
    for (const auto& name : option.long_names()) {
      place.options.push_back({"--" + name, one_line(option.help())});
    }
  }
  for (const auto& command : app.commands()) {
    place.commands.push_back({command->name(), one_line(command->help())});
  }
  places.push_back(std::move(place));
  for (const auto& command : app.commands()) collect(*command, path + "/" + command->name(), places);
}

// In single quotes, for any of the shells.
std::string quoted(const std::string& text, const char* quote_inside) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(quote_inside) : std::string(1, c);
  return out + "'";
}

// Every path but the program itself: "/flow|/flow/submit|…".
std::string all_paths(const std::vector<Place>& places) {
  std::string paths;
  for (const auto& place : places) {
    if (!place.path.empty()) paths += (paths.empty() ? "" : "|") + place.path;
  }
  return paths;
}

std::string bash_script(const std::vector<Place>& places) {
  std::string cases;
  for (const auto& place : places) {
    std::string words;
    for (const auto* list : {&place.commands, &place.options}) {
      for (const auto& word : *list) words += (words.empty() ? "" : " ") + word.text;
    }
    cases += fmt::format("    '{}') words='{}' ;;\n", place.path, words);
  }
  return fmt::format(R"(# bash completion for flowfabric
_flowfabric() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" path='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path/${{COMP_WORDS[i]}}" in
      {}) path="$path/${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _flowfabric flowfabric
)",
                     all_paths(places), cases);
}

std::string zsh_script(const std::vector<Place>& places) {
  std::string cases;
  for (const auto& place : places) {
    std::string items;
    for (const auto* list : {&place.commands, &place.options}) {
      for (const auto& word : *list) items += "\n        " + quoted(word.text + ":" + word.help, "'\\''");
    }
    cases += fmt::format("    '{}') items=({}\n      ) ;;\n", place.path, items);
  }
  return fmt::format(R"(#compdef flowfabric
# zsh completion for flowfabric
_flowfabric() {{
  local place='' i
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    case "$place/${{words[i]}}" in
      {}) place="$place/${{words[i]}}" ;;
    esac
  done
  case "$place" in
{}  esac
  _describe 'flowfabric' items
  _files
}}
compdef _flowfabric flowfabric
)",
                     all_paths(places), cases);
}

std::string fish_script(const std::vector<Place>& places) {
  std::string known;
  for (const auto& place : places) {
    if (!place.path.empty()) known += " " + place.path;
  }
  auto script = fmt::format(R"(# fish completion for flowfabric
function __flowfabric_at
    set -l place ''
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if contains -- "$place/$word"{}
            set place "$place/$word"
        end
    end
    test "$place" = "$argv[1]"
end
)",
                            known);
  for (const auto& place : places) {
    const auto line = [&](const std::string& what, const std::string& help) {
      script += fmt::format("complete -c flowfabric -n \"__flowfabric_at '{}'\" {} -d {}\n", place.path, what,
                            quoted(help, "\\'"));
    };
    for (const auto& command : place.commands) line("-f -a " + command.text, command.help);
    for (const auto& option : place.options) line("-l " + option.text.substr(2), option.help);
  }
  return script;
}

int print_script(const Command& app, const std::string& shell) {
  std::vector<Place> places;
  collect(app, "", places);
  fmt::print("{}", shell == "bash"  ? bash_script(places)
                   : shell == "zsh" ? zsh_script(places)
                                    : fish_script(places));
  return kDone;
}

}  // namespace

void add_completion(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("completion", "Print a script that lets a shell complete commands.");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command->footer(
      "Examples:\n"
      "  source <(flowfabric completion bash)                      # in ~/.bashrc\n"
      "  source <(flowfabric completion zsh)                       # in ~/.zshrc, after compinit\n"
      "  flowfabric completion fish > ~/.config/fish/completions/flowfabric.fish");
  command->callback([&app, shell, &chosen] { chosen = [&app, shell] { return print_script(app, *shell); }; });
}

}  // namespace flowfabric::cli
