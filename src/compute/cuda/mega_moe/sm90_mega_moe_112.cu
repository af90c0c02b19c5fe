#include "compute/cuda/mega_moe/instantiate.cuh"

MM_INSTANTIATE_MEGA_MOE(112, 2)
