// Runs kernels written in CUDA C++ on the CPU: one fiber for each thread of a block, block after block.
//
// Warp functions and barriers yield until all their threads have come. It shows what a kernel computes, and
// stops where a lane misses a warp function; it shows no race and no weak ordering of memory.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct Dim {
    unsigned x;
};
static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace shim {

const unsigned LANES = 32;
const size_t STACK = 64 << 10;

struct Fiber {
    ucontext_t first;
    jmp_buf at;
    bool started, done;
};

// Threads that have come to a barrier, and how often all have.
struct Barrier {
    unsigned arrived, generation;
    int flags[2];
};

struct Warp {
    Barrier barrier;
    uint64_t values[2][LANES];
};

static std::vector<Fiber> fibers;
static std::vector<char> stacks;
static std::vector<Warp> warps;
static Barrier block;
static unsigned running, progress;
static jmp_buf scheduler;
static ucontext_t home;
static const std::function<void()>* body;

static inline void yield() {
    if (_setjmp(fibers[running].at) == 0) _longjmp(scheduler, 1);
}

static void run_fiber() {
    (*body)();
    fibers[running].done = true;
    progress++;
    _longjmp(scheduler, 1);
}

// Waits for all of `expected` threads; the generation that ended.
static inline unsigned wait(Barrier& barrier, unsigned expected) {
    const unsigned mine = barrier.generation;
    if (++barrier.arrived == expected) {
        barrier.arrived = 0;
        barrier.generation++;
        progress++;
    }
    while (barrier.generation == mine) yield();
    return mine;
}

static inline Warp& warp() { return warps[running / LANES]; }

// What every lane of the warp gave. Two buffers, because a fast lane may give again before a slow one has read.
static inline const uint64_t* exchange(uint64_t own) {
    Warp& all = warp();
    uint64_t* values = all.values[all.barrier.generation % 2];
    values[running % LANES] = own;
    wait(all.barrier, LANES);
    return values;
}

static inline void resume(unsigned thread) {
    Fiber& fiber = fibers[thread];
    running = thread;
    threadIdx.x = thread;
    if (_setjmp(scheduler) != 0) return;
    if (fiber.started) _longjmp(fiber.at, 1);
    fiber.started = true;
    swapcontext(&home, &fiber.first);
}

static void run_block(unsigned threads) {
    fibers.resize(threads);
    stacks.resize(threads * STACK);
    warps.assign(threads / LANES, Warp());
    block = Barrier();
    for (unsigned t = 0; t < threads; ++t) {
        fibers[t].started = fibers[t].done = false;
        getcontext(&fibers[t].first);
        fibers[t].first.uc_stack.ss_sp = &stacks[t * STACK];
        fibers[t].first.uc_stack.ss_size = STACK;
        fibers[t].first.uc_link = nullptr;
        makecontext(&fibers[t].first, run_fiber, 0);
    }
    for (unsigned left = threads; left > 0;) {
        const unsigned before = progress;
        left = 0;
        for (unsigned t = 0; t < threads; ++t) {
            if (!fibers[t].done) resume(t);
            left += !fibers[t].done;
        }
        if (progress == before) {
            fprintf(stderr, "block %u: some thread never comes to a barrier that others wait at\n", blockIdx.x);
            abort();
        }
    }
}

// kernel<<<blocks, threads>>>
static void launch(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
    body = &kernel;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) run_block(threads);
}

template <class To, class From>
static inline To cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace shim

static inline void __syncthreads() { shim::wait(shim::block, blockDim.x); }

static inline int __syncthreads_or(int flag) {
    shim::Barrier& block = shim::block;
    const unsigned mine = block.generation;
    if (block.arrived == 0) block.flags[mine % 2] = 0;
    block.flags[mine % 2] |= flag != 0;
    shim::wait(block, blockDim.x);
    return block.flags[mine % 2];
}

static inline void __syncwarp() { shim::exchange(0); }

static inline unsigned __ballot_sync(unsigned, int flag) {
    const uint64_t* values = shim::exchange(flag != 0);
    unsigned map = 0;
    for (unsigned l = 0; l < shim::LANES; ++l) map |= unsigned(values[l]) << l;
    return map;
}

static inline int __any_sync(unsigned mask, int flag) { return __ballot_sync(mask, flag) != 0; }

static inline unsigned __reduce_or_sync(unsigned, unsigned own) {
    const uint64_t* values = shim::exchange(own);
    unsigned all = 0;
    for (unsigned l = 0; l < shim::LANES; ++l) all |= unsigned(values[l]);
    return all;
}

static inline unsigned __reduce_add_sync(unsigned, unsigned own) {
    const uint64_t* values = shim::exchange(own);
    unsigned sum = 0;
    for (unsigned l = 0; l < shim::LANES; ++l) sum += unsigned(values[l]);
    return sum;
}

template <class T>
static inline T __shfl_sync(unsigned, T own, int lane) {
    return T(shim::exchange(uint64_t(own))[lane % shim::LANES]);
}

template <class T>
static inline T __shfl_xor_sync(unsigned, T own, unsigned mask) {
    return T(shim::exchange(uint64_t(own))[(shim::running % shim::LANES) ^ mask]);
}

template <class T>
static inline T __shfl_up_sync(unsigned, T own, unsigned distance) {
    const unsigned lane = shim::running % shim::LANES;
    return T(shim::exchange(uint64_t(own))[lane >= distance ? lane - distance : lane]);
}

template <class T>
static inline T atomicOr(T* target, T bits) {
    const T old = *target;
    *target |= bits;
    return old;
}

static inline double __longlong_as_double(long long bits) { return shim::cast<double>(bits); }
static inline long long __double_as_longlong(double x) { return shim::cast<long long>(x); }
static inline float __uint_as_float(unsigned bits) { return shim::cast<float>(bits); }
static inline unsigned __float_as_uint(float x) { return shim::cast<unsigned>(x); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __double2float_rn(double x) { return float(x); }
static inline float __int2float_rn(int x) { return float(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
