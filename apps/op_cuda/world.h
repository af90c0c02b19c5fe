// All ranks of an expert-parallel group on one device: heaps, workspaces, random experts and inputs.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/cuda/mega_moe/launch.h"
#include "compute/cuda/mega_moe/prepare.h"
#include "oracle.h"

namespace megamoe::op_cuda {

// Ends the program with the place and the device's message: nothing can be measured after a device error.
void check(cudaError_t error, const char* what);

class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    explicit DeviceBuffer(std::int64_t bytes);
    DeviceBuffer(DeviceBuffer&& other) noexcept : data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr; }
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~DeviceBuffer();

    template <class T = std::byte>
    T* as(std::int64_t byte_offset = 0) const {
        return reinterpret_cast<T*>(static_cast<std::byte*>(data_) + byte_offset);
    }
    std::int64_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::int64_t bytes_ = 0;
};

struct WorldOptions {
    mega::Shape shape;
    cuda::ExpertFormat format = cuda::ExpertFormat::kMxfp4;
    cuda::MegaMoeConfig config;
    float clamp = 10.0F;
    std::int32_t weight_sets = 1;  // copies of the panels, taken in turn, so that weights come from memory
    std::int32_t exponent_spread = 5;
    std::uint32_t seed = 1;
};

enum class Routing : std::int32_t { kUniform, kSkewed, kOneExpert, kWithHoles };

class World {
  public:
    explicit World(const WorldOptions& options);

    // Fresh inputs; rows [num_ranks].
    void set_inputs(const std::vector<std::int32_t>& rows, Routing routing, std::uint32_t seed);
    void set_rows(const std::vector<std::int32_t>& rows);  // device scalars only
    void set_epoch(std::uint32_t epoch);
    void set_delay(std::uint32_t ns) { delay_ns_ = ns; }
    void set_timeout(std::uint64_t ns) { timeout_ns_ = ns; }
    void poison_outputs(cudaStream_t stream);

    cudaError_t launch(cuda::MegaMoeVersion version, std::int32_t weight_set, cudaStream_t stream);

    std::vector<float> output(std::int32_t rank) const;  // [rows, H]
    mega::Control control(std::int32_t rank) const;
    // Relative L2 error of up to `max_rows` rows a rank against the oracle, over all ranks.
    double error(std::int32_t max_rows) const;
    std::int32_t active_experts() const;
    const cuda::FoldReport& fold() const { return fold_; }
    const WorldOptions& options() const { return o_; }

  private:
    cuda::RawExperts raw_experts(std::int32_t rank) const;
    HostExpert host_expert(std::int32_t expert) const;

    WorldOptions o_;
    cuda::MegaMoeParams params_{};
    std::vector<DeviceBuffer> heaps_, workspaces_, outs_;
    std::vector<std::vector<DeviceBuffer>> w13_, w2_;  // [set][rank]
    DeviceBuffer raw_codes_[4], raw_scales_[4], num_rows_;
    std::vector<std::int32_t> rows_;
    std::vector<std::vector<std::int32_t>> ids_;
    std::vector<std::vector<float>> weights_;
    std::vector<std::vector<std::uint8_t>> x_;
    std::vector<std::vector<float>> x_scale_;
    cuda::FoldReport fold_{};
    std::uint32_t delay_ns_ = 0;
    std::uint64_t timeout_ns_ = std::uint64_t{20} * 1000 * 1000 * 1000;
};

}  // namespace megamoe::op_cuda
