// Sums over rows in the order of the host: the lanes of a block, the blocks of a chunk, the chunks exactly.
//
// Sixteen threads share a block of 1024 rows: thread l has rows l, l + 16, .. and is lane l of the host's sum. The lanes
// are added in a tree by shuffles. A second kernel adds the blocks of each chunk; the host adds the chunks.
//
// Invariants:
// - Every thread of a warp reaches every shuffle: a thread without rows has a lane of zero.
// - No multiply-add is fused (`--fmad=false`), and terms are added from the left, as written.

typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE static __device__ __forceinline__

// Rows summed in one go, and lanes of their sum: BLOCK and LANES of the host.
const u32 BLOCK = 1024;
const u32 LANES = 16;
// Lanes of a product with one of four vectors, and of a plane of a grid.
const u32 HALF = 8;
const u32 ALL = 0xffffffffu;
// Vectors in a table.
const u32 TABLE = 32;

struct Vectors {
    const double* v[TABLE];
};

struct Coefficients {
    double c[TABLE];
};

// The row of a thread in passes without sums.
DEVICE u32 own_row() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The sum of WIDTH lanes, for the first of them.
template <u32 WIDTH>
DEVICE double sum_lanes(double lane) {
    for (u32 distance = WIDTH / 2; distance > 0; distance /= 2) lane += __shfl_down_sync(ALL, lane, distance, WIDTH);
    return lane;
}

// The rows of a pass with sums, and how many make a chunk: each begins with a block.
struct Rows {
    u32 n;
    u32 chunk;
};

// The rows of one block, as one of its threads sees them.
struct BlockRows {
    u32 block;
    u32 blocks;
    u32 lane;
    u32 begin;
    u32 end;

    __device__ explicit BlockRows(Rows rows) {
        u64 n = rows.n;
        u64 chunk = rows.chunk;
        u32 per_chunk = (rows.chunk - 1) / BLOCK + 1;
        u32 thread = own_row();
        block = thread / LANES;
        lane = thread % LANES;
        blocks = rows.n / rows.chunk * per_chunk + (rows.n % rows.chunk + BLOCK - 1) / BLOCK;
        u64 chunk_begin = block / per_chunk * chunk;
        u64 chunk_end = min(chunk_begin + chunk, n);
        begin = min(chunk_begin + block % per_chunk * BLOCK, n);
        end = min(u64(begin) + BLOCK, chunk_end);
    }

    // Sum number `index` of this block becomes `total`, as its first thread has it.
    __device__ void store(u32 index, double total, double* sums) const {
        if (lane == 0 && block < blocks) sums[u64(index) * blocks + block] = total;
    }

    // Sum number `index` of this block becomes the sum of the lanes.
    __device__ void add_up(u32 index, double own, double* sums) const { store(index, sum_lanes<LANES>(own), sums); }
};

// The blocks of each chunk in order: `chunk_sums[k chunks + c]` for sum k and chunk c. A thread each.
extern "C" __global__ void sum_chunks(u32 blocks, u32 chunk_blocks, u32 chunks, u32 count, const double* sums,
                                      double* chunk_sums) {
    u32 thread = own_row();
    if (thread >= chunks * count) return;
    u32 first = thread % chunks * chunk_blocks;
    u32 end = min(first + chunk_blocks, blocks);
    const double* own = sums + u64(thread / chunks) * blocks;
    double total = 0.0;
    for (u32 block = first; block < end; block++) total += own[block];
    chunk_sums[thread] = total;
}
