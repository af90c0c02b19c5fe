// The subcommands of the program, one function and one short file each: parse, call the library, return an exit code.
//
// In    argv[0] is the subcommand's own name, argv[1..] are its arguments
// Out   an exit code from the list below
// Error no exception leaves a command; error texts go to stderr, results to stdout
#pragma once

namespace megamoe::apps {

// Spec  bench spec, 2: one list for the whole program
enum ExitCode : int {
    kExitDone = 0,
    kExitUsage = 1,          // the command line, the configuration or an input file is wrong
    kExitGateFailed = 2,     // it ran to the end, and a check of the result failed
    kExitRequestFailed = 3,  // at least one request failed
    kExitServer = 4,         // the server did not start, died or stopped answering
    kExitNotComparable = 5,
    kExitManifest = 6,  // a prompt manifest is damaged
    kExitInternal = 7,
    kExitInterrupted = 130,
};

int demo_command(int argc, char** argv);      // megamoe demo
int serve_command(int argc, char** argv);     // megamoe serve
int bench_command(int argc, char** argv);     // megamoe bench manifest | serve
int op_command(int argc, char** argv);        // megamoe op check | bench
int model_command(int argc, char** argv);     // megamoe model inspect | synth | generate | golden
int generate_command(int argc, char** argv);  // megamoe model generate, called by model_command
int golden_command(int argc, char** argv);    // megamoe model golden, called by model_command

}  // namespace megamoe::apps
