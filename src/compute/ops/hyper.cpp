#include "compute/ops/hyper.h"

#include <algorithm>
#include <cmath>

namespace megamoe::ops {
namespace {

float sigmoid(float x) {
    return 1.0F / (1.0F + std::exp(-x));
}

// Divides each column by its sum plus eps.
void normalise_columns(std::span<float> c, std::size_t n, float eps) {
    for (std::size_t k = 0; k < n; ++k) {
        float sum = 0;
        for (std::size_t j = 0; j < n; ++j) {
            sum += c[j * n + k];
        }
        for (std::size_t j = 0; j < n; ++j) {
            c[j * n + k] /= sum + eps;
        }
    }
}

void normalise_rows(std::span<float> c, std::size_t n, float eps) {
    for (std::size_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < n; ++k) {
            sum += c[j * n + k];
        }
        for (std::size_t k = 0; k < n; ++k) {
            c[j * n + k] /= sum + eps;
        }
    }
}

void softmax_row(std::span<float> row, float eps) {
    const float top = *std::max_element(row.begin(), row.end());
    float sum = 0;
    for (float& v : row) {
        v = std::exp(v - top);
        sum += v;
    }
    for (float& v : row) {
        v = v / sum + eps;
    }
}

}  // namespace

void hyper_pre(std::span<const float> mix, float scale, std::span<const float> base, float eps, std::span<float> pre) {
    for (std::size_t j = 0; j < pre.size(); ++j) {
        pre[j] = sigmoid(scale * mix[j] + base[j]) + eps;
    }
}

void hyper_coefficients(const HyperShape& shape, std::span<const float> mix, std::span<const float> scale,
                        std::span<const float> base, std::span<float> pre, std::span<float> post,
                        std::span<float> comb) {
    const auto n = static_cast<std::size_t>(shape.num_streams);
    hyper_pre(mix.first(n), scale[0], base.first(n), shape.eps, pre);
    for (std::size_t j = 0; j < n; ++j) {
        post[j] = 2 * sigmoid(scale[1] * mix[n + j] + base[n + j]);
    }
    for (std::size_t i = 0; i < n * n; ++i) {
        comb[i] = scale[2] * mix[2 * n + i] + base[2 * n + i];
    }
    for (std::size_t j = 0; j < n; ++j) {
        softmax_row(comb.subspan(j * n, n), shape.eps);
    }
    normalise_columns(comb, n, shape.eps);
    for (std::int32_t i = 1; i < shape.iters; ++i) {
        normalise_rows(comb, n, shape.eps);
        normalise_columns(comb, n, shape.eps);
    }
}

}  // namespace megamoe::ops
