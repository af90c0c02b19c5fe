// Shared memory: 32-bit addresses, barriers, bulk copies into it, and the matrix store.
#pragma once

#include <cstdint>

namespace megamoe::ptx {

__device__ inline std::uint32_t shared_address(const void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline void mbarrier_init(std::uint64_t* bar, std::uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}
// Makes initialised barriers visible to the copy engine.
__device__ inline void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void mbarrier_arrive(std::uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ inline void mbarrier_arrive(std::uint64_t* bar) {
    mbarrier_arrive(shared_address(bar));
}
__device__ inline void mbarrier_arrive_expect_tx(std::uint64_t* bar, std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
                 : "memory");
}
// True: the phase of this parity is over. Waits a while in hardware before it says no.
__device__ inline bool mbarrier_try_wait_parity(std::uint32_t bar, std::uint32_t parity) {
    std::uint32_t done;
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
    return done != 0;
}

// Threads of whole warps meet; `id` 1..15 (0 is __syncthreads).
__device__ inline void bar_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// L2 priority of a copy's lines.
inline constexpr std::uint64_t kEvictFirst = 0x12F0000000000000U;
inline constexpr std::uint64_t kEvictLast = 0x14F0000000000000U;

// Bytes and both addresses are multiples of 16.
__device__ inline void bulk_load(void* shared, const void* global, std::uint32_t bytes, std::uint64_t* bar,
                                 std::uint64_t l2_priority) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(bar)), "l"(l2_priority)
        : "memory");
}
__device__ inline void bulk_prefetch_l2(const void* global, std::uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

__device__ inline uint4 ld_shared_v4(std::uint32_t address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address));
    return v;
}
__device__ inline uint2 ld_shared_v2(std::uint32_t address) {
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address));
    return v;
}
__device__ inline std::uint32_t ld_shared(std::uint32_t address) {
    std::uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address));
    return v;
}

// Stores an 8x8 tile of 16-bit values transposed: lane j < 8 gives the address of the 16 bytes that column j becomes.
__device__ inline void stmatrix_x1_trans(std::uint32_t address, std::uint32_t v) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(address), "r"(v) : "memory");
}

// A value that the compiler keeps in a register instead of computing it again where it is used.
__device__ inline std::uint32_t opaque(std::uint32_t v) {
    asm volatile("" : "+r"(v));
    return v;
}

// Byte i of the result is byte (selector >> 4 i) & 15 of {b, a}; bit 3 of a selector must be 0. __byte_perm masks its
// selector, which costs an operation more.
__device__ inline std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    std::uint32_t v;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(selector));
    return v;
}

template <int kRegisters>
__device__ inline void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace megamoe::ptx
