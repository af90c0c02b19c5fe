// MM_HD: a function of both the host and the device.
#pragma once

#ifdef __CUDACC__
#define MM_HD __host__ __device__
#else
#define MM_HD
#endif
