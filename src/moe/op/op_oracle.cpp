#include "moe/op/op_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace megamoe::moe::op {
namespace {

constexpr std::size_t kGroup = 128;  // channels that share an activation scale
constexpr double kMaxE4m3 = 448;
constexpr double kAmaxFloor = 1e-4;
constexpr int kMinE4m3Exponent = -5;  // frexp's, of the smallest normal E4M3; below it the step stays the same

// Rounds to `bits` significant bits, ties to even; below frexp's exponent `min_exponent` the step stays the same.
double round_to(double x, int bits, int min_exponent) {
    int exponent = 0;
    std::frexp(x, &exponent);
    const int step = std::max(exponent, min_exponent) - bits;
    return std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
}

// y[i, n] = bf16(sum over c of w[n, c] * x[i, c])
std::vector<double> product(const RawMatrix& w, const std::vector<double>& x, Workers& workers) {
    const ops::MatrixView view = w.view();
    const std::size_t rows = x.size() / static_cast<std::size_t>(w.cols);
    const auto cols = static_cast<std::size_t>(w.cols);
    std::vector<double> y(rows * static_cast<std::size_t>(w.rows));
    workers.run(w.rows, [&](std::int64_t n) {
        std::vector<double> row(cols);
        for (std::size_t c = 0; c < cols; ++c) {
            row[c] = ops::matrix_element(view, static_cast<std::int32_t>(n), static_cast<std::int32_t>(c));
        }
        for (std::size_t i = 0; i < rows; ++i) {
            double sum = 0;
            for (std::size_t c = 0; c < cols; ++c) {
                sum += row[c] * x[i * cols + c];
            }
            y[i * static_cast<std::size_t>(w.rows) + static_cast<std::size_t>(n)] = oracle_bf16(sum);
        }
    });
    return y;
}

double swiglu(double gate, double up, double limit) {
    const double g = std::min(gate, limit);
    return g / (1 + std::exp(-g)) * std::clamp(up, -limit, limit);
}

// x [n, H] quantised; weight [n]
std::vector<double> run_expert(const RawExpert& expert, double limit, const std::vector<double>& x,
                               const std::vector<double>& weight, Workers& workers) {
    const std::vector<double> gate = product(expert.w1, x, workers);
    const std::vector<double> up = product(expert.w3, x, workers);
    const auto inter = static_cast<std::size_t>(expert.w1.rows);
    std::vector<double> act(gate.size());
    for (std::size_t i = 0; i < act.size(); ++i) {
        act[i] = oracle_bf16(swiglu(gate[i], up[i], limit) * weight[i / inter]);
    }
    for (std::size_t i = 0; i < weight.size(); ++i) {
        oracle_fp8(std::span(act).subspan(i * inter, inter));
    }
    return product(expert.w2, act, workers);
}

}  // namespace

double oracle_bf16(double x) {
    return round_to(x, 8, std::numeric_limits<float>::min_exponent);
}

void oracle_fp8(std::span<double> x) {
    for (std::size_t begin = 0; begin < x.size(); begin += kGroup) {
        const auto group = x.subspan(begin, std::min(kGroup, x.size() - begin));
        double amax = kAmaxFloor;
        for (const double v : group) {
            amax = std::max(amax, std::abs(v));
        }
        const double scale = std::exp2(std::ceil(std::log2(amax / kMaxE4m3)));
        for (double& v : group) {
            v = round_to(std::clamp(v / scale, -kMaxE4m3, kMaxE4m3), 4, kMinE4m3Exponent) * scale;
        }
    }
}

std::vector<double> run_oracle(const OracleInput& in, Workers& workers) {
    const auto hidden = static_cast<std::size_t>(in.shared->w1.cols);
    std::vector<double> quantised(in.x, in.x + static_cast<std::size_t>(in.rows) * hidden);
    for (std::size_t row = 0; row < static_cast<std::size_t>(in.rows); ++row) {
        oracle_fp8(std::span(quantised).subspan(row * hidden, hidden));
    }
    std::vector<double> sum(quantised.size());
    // Adds what `expert` makes of the rows `source` with these weights.
    const auto add = [&](const RawExpert& expert, const std::vector<std::int64_t>& source,
                         const std::vector<double>& weight) {
        std::vector<double> x;
        for (const std::int64_t row : source) {
            const auto begin = quantised.begin() + row * static_cast<std::int64_t>(hidden);
            x.insert(x.end(), begin, begin + static_cast<std::int64_t>(hidden));
        }
        const std::vector<double> result = run_expert(expert, in.limit, x, weight, workers);
        for (std::size_t i = 0; i < result.size(); ++i) {
            sum[static_cast<std::size_t>(source[i / hidden]) * hidden + i % hidden] += result[i];
        }
    };
    for (std::size_t e = 0; e < in.routed.size(); ++e) {
        std::vector<std::int64_t> source;
        std::vector<double> weight;
        for (std::int64_t choice = 0; choice < in.rows * in.top_k; ++choice) {
            if (in.expert_id[choice] == static_cast<std::int32_t>(e)) {
                source.push_back(choice / in.top_k);
                weight.push_back(in.weight[choice]);
            }
        }
        if (!source.empty()) {
            add(in.routed[e], source, weight);
        }
    }
    std::vector<std::int64_t> all(static_cast<std::size_t>(in.rows));
    for (std::size_t row = 0; row < all.size(); ++row) {
        all[row] = static_cast<std::int64_t>(row);
    }
    add(*in.shared, all, std::vector<double>(all.size(), 1.0));
    std::transform(sum.begin(), sum.end(), sum.begin(), oracle_bf16);
    return sum;
}

double relative_error(std::span<const float> got, std::span<const double> expected) {
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double d = static_cast<double>(got[i]) - expected[i];
        difference += d * d;
        norm += expected[i] * expected[i];
    }
    const double error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

}  // namespace megamoe::moe::op
