// The values of some blocks, one block after the other: of those that the host chooses a plan by. Follows qb_cut.cuh.

// Copies the values of a block to `target`, without padding.
template <class V, class C>
DEVICE void gather(const C& cut, const typename V::Bits* values, typename V::Bits* target) {
    ROLLED for (u32 place = threadIdx.x; place < BLOCK; place += THREADS) {
        if (cut.has(place)) target[cut.rank(place)] = values[cut.first + cut.index(place)];
    }
}

#define QB_GATHER(V, CUT)                                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                             \
        qb_gather(Window w, const V::Bits* values, const u32* blocks, V::Bits* target) {                              \
        gather<V>(CUT<V>(w, blocks[blockIdx.x]), values, target + (u64)blockIdx.x * BLOCK);                           \
    }
