// XXH3 of zones, 128 bits each (Y. Collet, the specification of XXH3 in the documentation of xxHash), for zones longer
// than 240 bytes: the hash of `host.rs`.
//
// Four threads share a zone. Thread l has the accumulators 2 l and 2 l + 1, which take the words 2 l and 2 l + 1 of each
// stripe of 64 bytes: the threads of a zone read a stripe side by side.
//
// Invariants:
// - Every thread reaches the barriers: those without a zone hash nothing between them.
// - The first byte of a zone is at a multiple of 8. Its end may be anywhere.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE static __device__ __forceinline__

// Bytes of a stripe, and stripes between two scrambles: those that the keys last for.
const u32 STRIPE = 64;
const u32 STRIPES = 16;
// Threads of a zone; HASH_LANES of the launch. Those of a thread block; HASH_THREADS.
const u32 LANES = 4;
const u32 THREADS = 64;
// Words of the keys; KEY_WORDS of the launch.
const u32 KEY_WORDS = 24;
// The first byte of the keys of scrambles, of the last stripe, and of both halves of the result.
const u32 SCRAMBLE_KEYS = 128;
const u32 LAST_KEYS = 121;
const u32 LOW_KEYS = 11;
const u32 HIGH_KEYS = 117;

const u64 PRIME32_1 = 0x9e3779b1ull;
const u64 PRIME32_2 = 0x85ebca77ull;
const u64 PRIME32_3 = 0xc2b2ae3dull;
const u64 PRIME64_1 = 0x9e3779b185ebca87ull;
const u64 PRIME64_2 = 0xc2b2ae3d27d4eb4full;
const u64 PRIME64_3 = 0x165667b19e3779f9ull;
const u64 PRIME64_4 = 0x85ebca77c2b2ae63ull;
const u64 PRIME64_5 = 0x27d4eb2f165667c5ull;
const u64 AVALANCHE = 0x165667919e3779f9ull;

// The 8 bytes at any address.
DEVICE u64 word_at(const u8* bytes) {
    u64 word = 0;
    for (u32 i = 0; i < 8; ++i) word |= (u64)bytes[i] << (8 * i);
    return word;
}

// The 8 bytes of the keys from any byte on.
DEVICE u64 key_at(const u64* keys, u32 byte) {
    u32 shift = 8 * (byte % 8);
    u64 word = keys[byte / 8] >> shift;
    return shift == 0 ? word : word | keys[byte / 8 + 1] << (64 - shift);
}

// Two accumulators of a zone.
struct Accumulators {
    u64 even;
    u64 odd;

    __device__ explicit Accumulators(u32 lane) {
        even = lane == 0 ? PRIME32_3 : lane == 1 ? PRIME64_2 : lane == 2 ? PRIME64_4 : PRIME64_5;
        odd = lane == 0 ? PRIME64_1 : lane == 1 ? PRIME64_3 : lane == 2 ? PRIME32_2 : PRIME32_1;
    }

    // Takes two words of a stripe. Each word is added to the other's accumulator as it is.
    __device__ void take(u64 even_word, u64 odd_word, u64 even_key, u64 odd_key) {
        u64 even_mixed = even_word ^ even_key;
        u64 odd_mixed = odd_word ^ odd_key;
        even += odd_word + (u64)(u32)even_mixed * (even_mixed >> 32);
        odd += even_word + (u64)(u32)odd_mixed * (odd_mixed >> 32);
    }

    __device__ void scramble(u64 even_key, u64 odd_key) {
        even = (even ^ even >> 47 ^ even_key) * PRIME32_1;
        odd = (odd ^ odd >> 47 ^ odd_key) * PRIME32_1;
    }

    // The part of both in one half of the result.
    __device__ u64 merge(u64 even_key, u64 odd_key) const {
        u64 left = even ^ even_key;
        u64 right = odd ^ odd_key;
        return left * right ^ __umul64hi(left, right);
    }
};

// The accumulators of a zone of `len` bytes once all its stripes are taken.
DEVICE Accumulators accumulate(const u8* zone, u64 len, const u64* keys, u32 lane) {
    Accumulators own(lane);
    const u64* words = (const u64*)zone + 2 * lane;
    // The last stripe ends with the zone, and may begin in the one before.
    u64 stripes = (len - 1) / STRIPE;
    for (u64 stripe = 0; stripe < stripes; ++stripe) {
        u32 key = stripe % STRIPES + 2 * lane;
        own.take(words[0], words[1], keys[key], keys[key + 1]);
        words += STRIPE / 8;
        if (stripe % STRIPES == STRIPES - 1) {
            const u64* last = keys + SCRAMBLE_KEYS / 8 + 2 * lane;
            own.scramble(last[0], last[1]);
        }
    }
    const u8* tail = zone + len - STRIPE + 16 * lane;
    u32 key = LAST_KEYS + 16 * lane;
    own.take(word_at(tail), word_at(tail + 8), key_at(keys, key), key_at(keys, key + 8));
    return own;
}

// One half of the result, of the parts of all threads of a zone.
DEVICE u64 finish(const u64* parts, u64 start) {
    u64 hash = start;
    for (u32 lane = 0; lane < LANES; ++lane) hash += parts[lane];
    hash = (hash ^ hash >> 37) * AVALANCHE;
    return hash ^ hash >> 32;
}

// Hashes the zones of `bytes`, of which the last may be shorter: the low and the high half of each.
extern "C" __global__ void hash_zones(const u8* bytes, u64 len, u64 zone_bytes, const u64* secret, u64* hashes) {
    __shared__ u64 keys[KEY_WORDS];
    __shared__ u64 low[THREADS];
    __shared__ u64 high[THREADS];
    if (threadIdx.x < KEY_WORDS) keys[threadIdx.x] = secret[threadIdx.x];
    __syncthreads();
    u32 lane = threadIdx.x % LANES;
    u64 zone = (u64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    u64 begin = zone * zone_bytes;
    u64 own_len = begin < len ? min(zone_bytes, len - begin) : 0;
    if (own_len > 0) {
        Accumulators own = accumulate(bytes + begin, own_len, keys, lane);
        u32 key = LOW_KEYS + 16 * lane;
        low[threadIdx.x] = own.merge(key_at(keys, key), key_at(keys, key + 8));
        key = HIGH_KEYS + 16 * lane;
        high[threadIdx.x] = own.merge(key_at(keys, key), key_at(keys, key + 8));
    }
    __syncthreads();
    if (own_len > 0 && lane == 0) {
        hashes[2 * zone] = finish(low + threadIdx.x, own_len * PRIME64_1);
        hashes[2 * zone + 1] = finish(high + threadIdx.x, ~(own_len * PRIME64_2));
    }
}
