#include "config/serve_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace megamoe {
namespace {

std::string text(std::int64_t number) {
    return fmt::format("{}", number);
}

Finding refuse(std::string id, std::string key, std::string value, std::string reason, std::string fix) {
    return {std::move(id), Severity::kRefuse, std::move(key), std::move(value), {}, std::move(reason), std::move(fix)};
}

// Sets a flag's value on the user's behalf; the origin shows it.
template <class Field, class Value>
void fill(ServeOptions& options, const char* flag, Field& field, Value value) {
    field = value;
    options.origins[flag] = Origin::kDerived;
}

std::string last_part(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) {
        path.pop_back();
    }
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

// --ep-size alone is the short form of the one geometry that exists here. Beside --tp-size or --dp-size a missing size
// is 1, as in SGLang, so that a launch line does not mean another thing here than there.
void derive_ranks(ServeOptions& options, std::vector<Finding>& findings) {
    const bool short_form = options.ep_size && !options.tp_size && !options.dp_size;
    const std::int32_t missing = short_form ? *options.ep_size : 1;
    if (short_form && missing > 1) {
        findings.push_back({"CFG-14",
                            Severity::kNote,
                            "--ep-size",
                            text(missing),
                            fmt::format("tp_size = dp_size = {}, DP attention on", missing),
                            "experts are spread over all ranks, and each rank serves its own requests",
                            {}});
    }
    if (!options.tp_size) {
        fill(options, "tp-size", options.tp_size, missing);
    }
    if (!options.dp_size) {
        fill(options, "dp-size", options.dp_size, missing);
    }
    if (!options.ep_size) {
        fill(options, "ep-size", options.ep_size, missing);
    }
    if (!options.enable_dp_attention) {
        fill(options, "enable-dp-attention", options.enable_dp_attention, short_form && missing > 1);
    }
    options.engine.num_ranks = std::max({*options.tp_size, *options.dp_size, *options.ep_size});
}

void derive_backend(ServeOptions& options, std::vector<Finding>& findings) {
    const std::string& backend = options.moe_a2a_backend;
    const bool fused = backend == "megamoe";
    if (fused) {
        options.engine.moe_backend = options.megamoe_version == 1 ? MoeBackend::kMegaMoe1 : MoeBackend::kMegaMoe2;
    } else {
        options.engine.moe_backend = backend == "reference" ? MoeBackend::kReference : MoeBackend::kStandard;
    }
    if (!fused && options.origins.contains("megamoe-version")) {
        findings.push_back({"CFG-45",
                            Severity::kNote,
                            "--megamoe-version",
                            text(options.megamoe_version),
                            "no effect",
                            fmt::format("--moe-a2a-backend is {}", backend),
                            {}});
    }
}

void derive_requests(ServeOptions& options, std::vector<Finding>& findings) {
    EngineConfig& engine = options.engine;
    const std::int32_t share = rank_share(engine).running_requests;
    if (const std::int32_t all = share * engine.num_ranks; all != engine.max_running_requests) {
        findings.push_back({"CFG-29",
                            Severity::kNote,
                            "--max-running-requests",
                            text(engine.max_running_requests),
                            text(all),
                            fmt::format("each of the {} ranks runs {}", engine.num_ranks, share),
                            {}});
        fill(options, "max-running-requests", engine.max_running_requests, all);
    }
}

class Checker {
  public:
    Checker(const ServeOptions& options, const ModelGeometry& geometry, const MachineFacts& machine)
        : options_(options), engine_(options.engine), geometry_(geometry), machine_(machine) {}

    std::vector<Finding> run() && {
        check_model();
        check_ranks();
        check_experts();
        check_threads();
        check_pages();
        check_chunk();
        check_files();
        return std::move(findings_);
    }

  private:
    void add(std::string id, std::string key, std::string value, std::string reason, std::string fix) {
        findings_.push_back(refuse(std::move(id), std::move(key), std::move(value), std::move(reason), std::move(fix)));
    }

    void check_model() {
        if (options_.kv_cache_dtype != "auto" && engine_.profile == Profile::kHf) {
            add("CFG-46", "--kv-cache-dtype", options_.kv_cache_dtype, "profile hf keeps its caches in float32",
                "use auto, or --profile ds");
        }
        if (engine_.context_length > geometry_.max_positions) {
            add("CFG-42", "--context-length", text(engine_.context_length),
                fmt::format("the model was made for {} positions", geometry_.max_positions),
                fmt::format("use at most {}, or 0 for just that", geometry_.max_positions));
        }
    }

    // The geometry is W = D = EP with attention TP = W / D = 1: a rank holds whole requests and a share of the experts.
    void check_ranks() {
        const std::int32_t tp = *options_.tp_size;
        const std::int32_t dp = *options_.dp_size;
        const std::int32_t ep = *options_.ep_size;
        const std::string asked = fmt::format("{} {} {}", tp, dp, ep);
        const std::string fix = fmt::format(
            "use --tp-size {0} --dp-size {0} --ep-size {0} --enable-dp-attention, or --ep-size "
            "{0} alone",
            engine_.num_ranks);
        if (tp % dp != 0) {
            add("CFG-14", "--tp-size --dp-size --ep-size", asked,
                fmt::format("{} ranks cannot be divided into {} groups that hold the same requests", tp, dp), fix);
        } else if (tp != dp) {
            add("CFG-14", "--tp-size --dp-size --ep-size", asked,
                fmt::format("attention would be split over tp / dp = {} ranks; here a rank computes it whole for its "
                            "own requests",
                            tp / dp),
                fix);
        } else if (ep != tp) {
            add("CFG-14", "--tp-size --dp-size --ep-size", asked,
                fmt::format("the experts must be spread over all {} ranks, not over {}", tp, ep), fix);
        } else if (tp > 1 && !*options_.enable_dp_attention) {
            add("CFG-14", "--dp-size", text(dp),
                fmt::format("without DP attention it would mean {} engines with a copy of the model each", dp),
                "add --enable-dp-attention");
        }
    }

    void check_experts() {
        if (geometry_.num_experts % engine_.num_ranks == 0) {
            return;
        }
        std::vector<std::int32_t> divisors;
        for (std::int32_t n = 1; n <= std::min(geometry_.num_experts, 64); ++n) {
            if (geometry_.num_experts % n == 0) {
                divisors.push_back(n);
            }
        }
        add("CFG-14", "--ep-size", text(engine_.num_ranks),
            fmt::format("{} ranks do not divide the model's {} experts", engine_.num_ranks, geometry_.num_experts),
            fmt::format("use one of {}", fmt::join(divisors, ", ")));
    }

    void check_threads() {
        const std::int64_t threads = std::int64_t{engine_.num_ranks} * engine_.threads_per_rank;
        if (threads > machine_.cores) {
            findings_.push_back({"CFG-41",
                                 Severity::kWarn,
                                 "--threads-per-rank",
                                 text(engine_.threads_per_rank),
                                 {},
                                 fmt::format("{} ranks x {} threads on {} cores: they will wait for one another",
                                             engine_.num_ranks, engine_.threads_per_rank, machine_.cores),
                                 "for timing use fewer ranks or threads; results do not change"});
        }
    }

    void check_pages() {
        for (const std::int32_t ratio : geometry_.ratios) {
            if (ratio > 0 && engine_.page_size % ratio != 0) {
                add("CFG-26", "--page-size", text(engine_.page_size),
                    fmt::format("a page must hold whole compressed entries, and a layer compresses {} tokens into one",
                                ratio),
                    "use a multiple of every ratio of the model, such as 256");
                return;
            }
        }
        if (engine_.max_total_tokens > 0 && engine_.max_total_tokens < engine_.page_size) {
            add("CFG-29", "--max-total-tokens", text(engine_.max_total_tokens),
                fmt::format("less than one page of {} tokens", engine_.page_size), "raise it, or lower --page-size");
        }
    }

    void check_chunk() {
        if (engine_.chunked_prefill_size <= 0) {
            add("CFG-08", "--chunked-prefill-size", text(engine_.chunked_prefill_size),
                "without chunks nothing bounds the rows of a step, and so its buffers", "use 8192");
        } else if (engine_.chunked_prefill_size < engine_.num_ranks) {
            add("CFG-13", "--chunked-prefill-size", text(engine_.chunked_prefill_size),
                fmt::format("it counts all ranks together, and {} ranks would get 0 tokens each", engine_.num_ranks),
                fmt::format("use at least {}", engine_.num_ranks));
        }
    }

    void check_files() {
        const std::int64_t need = 4 * std::int64_t{engine_.max_running_requests} + 1024;
        if (machine_.file_limit < need) {
            add("CFG-35", "--max-running-requests", text(engine_.max_running_requests),
                fmt::format("it needs {} file descriptors, and this process may open {}", need, machine_.file_limit),
                fmt::format("run `ulimit -n {}` first, or lower it", need));
        }
    }

    const ServeOptions& options_;
    const EngineConfig& engine_;
    const ModelGeometry& geometry_;
    const MachineFacts& machine_;
    std::vector<Finding> findings_;
};

}  // namespace

void derive_options(ServeOptions& options, const ModelGeometry& geometry, const MachineFacts& machine,
                    std::vector<Finding>& findings) {
    EngineConfig& engine = options.engine;
    derive_ranks(options, findings);
    derive_backend(options, findings);
    derive_requests(options, findings);
    if (engine.threads_per_rank == 0) {
        fill(options, "threads-per-rank", engine.threads_per_rank, std::max(1, machine.cores / engine.num_ranks));
    }
    if (engine.context_length == 0) {
        fill(options, "context-length", engine.context_length, geometry.max_positions);
    }
    if (options.served_model_name.empty()) {
        fill(options, "served-model-name", options.served_model_name, last_part(options.model_path));
    }
}

std::vector<Finding> check_options(const ServeOptions& options, const ModelGeometry& geometry,
                                   const MachineFacts& machine) {
    return Checker(options, geometry, machine).run();
}

}  // namespace megamoe
