// What the subcommands share: the conventions of this program on top of CLI11, and how an error ends a command.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "commands.h"

namespace megamoe::apps {

// Parses; an exit code if the command ends here (--help, or a line that is wrong and has been reported).
inline std::optional<int> parse_or_exit(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kExitDone : kExitUsage;
    }
}

// Which exit code an error of the library is.
inline int exit_code(const Error& error) {
    switch (error.code) {
        case Errc::kInvalidArgument:
        case Errc::kNotFound:
        case Errc::kFailedPrecondition:
            return kExitUsage;
        case Errc::kResourceExhausted:
        case Errc::kUnavailable:
            return kExitServer;
        case Errc::kInternal:
            break;
    }
    return kExitInternal;
}

// Reports `error` as the reason why `command` ("model inspect") ends; returns the exit code.
inline int fail(std::string_view command, const Error& error) {
    fmt::print(stderr, "megamoe {}: {}\n", command, to_string(error));
    return exit_code(error);
}

}  // namespace megamoe::apps
