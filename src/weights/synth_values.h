// The values of a synthetic model before they are stored: every parameter random, scaled so that activations keep a
// sane size in models of any width and depth, and nothing left at a value (0, 1) that would hide a bug.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weights/synth.h"
#include "weights/synth_router.h"
#include "weights/v4_schema.h"

namespace megamoe::weights {

class SynthValues {
  public:
    explicit SynthValues(const SynthOptions& options);

    // Row `row` of a float tensor; a tensor of rank 1 is one row.
    // Same  a row depends on seed, geometry, tensor name and row alone
    void fill_row(const TensorSpec& spec, std::int64_t row, std::span<float> values) const;

    // Row of a hash table: the experts of `token`.
    void fill_table_row(const TensorSpec& spec, std::int64_t token, std::span<std::int64_t> experts) const;

  private:
    struct Normal {
        double mean = 0;
        double deviation = 1;
    };
    Normal distribution(const TensorSpec& spec) const;
    void fill_embedding(std::int64_t token, std::span<float> values) const;
    const SynthRouter& router_of(const TensorSpec& spec) const;

    SynthOptions options_;
    DomainDirections directions_;
    std::vector<SynthRouter> routers_;  // [layers]
};

}  // namespace megamoe::weights
