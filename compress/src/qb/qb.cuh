// QB on the device: the same bytes as the files of Rust next to it, which are the oracle.
//
// One thread block of 512 codes one block of 4096 values, a piece of a line or a tile of a grid: qb_cut.cuh says which
// values it has. qb_tile.cuh predicts within tiles. Warp g has group g, and lane l of it the values 32 k + l.
// So a ballot over value k of each lane is word k of a bitmap, and loads are coalesced.
//
// Invariants:
// - Where bytes are decided, arithmetic is that of integers or of the *_rn intrinsics, which nothing contracts.
// - Values are loaded and stored as bits, so that payloads of NaN survive.
// - Every thread reaches every __syncthreads; every lane of a warp reaches every warp function of it.
// - No length read from a block's bytes is used before it was compared with the block's length.
// Compiles as CUDA C++14 by NVRTC.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef short i16;
typedef int i32;
typedef long long i64;

#define DEVICE static __device__ __forceinline__
// Before loops that would fill registers and instruction caches when unrolled; the same where several loads shall be
// under way; and before loops whose arrays are in registers only when unrolled.
#define ROLLED _Pragma("unroll 1")
#define BY_TWOS _Pragma("unroll 2")
#define UNROLLED _Pragma("unroll")

// Values in a block and in a group; codes before a group that its first ones are predicted from.
const u32 BLOCK = 4096;
const u32 GROUP = 256;
const u32 HISTORY = 16;
// Lanes a group is packed in: value 8 r + l stands in row r of lane l.
const u32 LANES = 8;
const u32 GROUPS = BLOCK / GROUP;
const u32 WARP = 32;
const u32 ALL = 0xffffffffu;
// Values of a group that one lane of a warp has.
const u32 OWN = GROUP / WARP;
const u32 THREADS = GROUPS * WARP;
// Distance from the group's base up to which 32 bits hold second differences.
const i64 NARROW = 1ll << 28;
const u32 PATCHES = 31;
const u32 MANY_EXCEPTIONS = BLOCK / 16;

enum Kind { KIND_ZERO = 0, KIND_CODED = 1, KIND_RAW = 2, KIND_EXACT = 3 };
enum Class { CLASS_PLUS = 0, CLASS_MINUS = 1, CLASS_MIXED = 2, CLASS_SIGN = 3, CLASS_ZEROS = 4 };

// ---- lattices ------------------------------------------------------------------------------------------------------

// 1.5 2^52 and 2^52, by bits: added to a float, they round it to an integer that stands in the low bits.
const i64 MAGIC_BITS = 0x4338000000000000ll;
const u64 INTEGER_BITS = 0x4330000000000000ull;
const u64 LIMIT_BITS = 0x4310000000000000ull;  // 2^50
const u64 F64_SIGN = 1ull << 63;
const u64 F64_SMALLEST_NORMAL = 1ull << 52;
const u64 F64_INFINITY = 0x7ffull << 52;
const u32 F32_SIGN = 1u << 31;
const u32 F32_SMALLEST_NORMAL = 1u << 23;
const u32 F32_INFINITY = 0xffu << 23;
const u32 SHIFT = 11;

// What the host says of a lattice: step or divisor, its inverse, the bound, the last code whose value is finite; the
// error up to which a parent's code is kept, negative for none.
struct Parameters {
    double step;
    double inverse;
    double bound;
    i64 last;
    double dead_band;
};

// The error is |x' - x| as the bits of a double, which ascend as doubles do.
struct Coded {
    i64 code;
    bool broken;
    u64 error;
};

DEVICE double from_bits(u64 bits) { return __longlong_as_double((i64)bits); }
DEVICE u64 to_bits(double x) { return (u64)__double_as_longlong(x); }
DEVICE u64 magnitude(double x) { return to_bits(x) & ~F64_SIGN; }

// Rounds to the nearest integer, ties to even: the integer, and the same as a float.
DEVICE double round_to_code(double t, i64& code) {
    double y = __dadd_rn(t, from_bits((u64)MAGIC_BITS));
    code = (i64)(to_bits(y) - (u64)MAGIC_BITS);
    return __dsub_rn(y, from_bits((u64)MAGIC_BITS));
}

// A code as a float, exactly for all codes below 2^51.
DEVICE double float_of(i64 code) {
    return __dsub_rn(from_bits((u64)code + (u64)MAGIC_BITS), from_bits((u64)MAGIC_BITS));
}

// The integer a float below 2^52 is; anything, but always the same, for others.
DEVICE u64 integer_of(double x) { return to_bits(__dadd_rn(x, from_bits(INTEGER_BITS))) & (F64_SMALLEST_NORMAL - 1); }

struct F64 {
    typedef u64 Bits;
    DEVICE bool is_negative(u64 x) { return x >> 63 != 0; }
    DEVICE bool is_zero(u64 x) { return (x & ~F64_SIGN) == 0; }
    DEVICE u64 negated(u64 x, bool flip) { return x ^ (flip ? F64_SIGN : 0); }
    DEVICE double wide(u64 x) { return from_bits(x); }
    DEVICE double rounded(double x) { return x; }
    DEVICE u64 narrowed(double x) { return to_bits(x); }
    // Pattern of |x| as the relative lattice counts it, and back.
    DEVICE u64 pattern(u64 x) { return (x & ~F64_SIGN) >> SHIFT; }
    DEVICE u64 of_pattern(u64 pattern) { return pattern << SHIFT; }
    DEVICE bool is_normal(u64 x) {
        u64 bits = x & ~F64_SIGN;
        return bits >= F64_SMALLEST_NORMAL && bits < F64_INFINITY;
    }
    DEVICE i64 ascending(u64 x) { return (i64)x ^ (i64)((u64)((i64)x >> 63) >> 1); }
    DEVICE u64 of_ascending(i64 code) { return (u64)ascending((u64)code); }
};

struct F32 {
    typedef u32 Bits;
    DEVICE bool is_negative(u32 x) { return x >> 31 != 0; }
    DEVICE bool is_zero(u32 x) { return (x & ~F32_SIGN) == 0; }
    DEVICE u32 negated(u32 x, bool flip) { return x ^ (flip ? F32_SIGN : 0); }
    DEVICE double wide(u32 x) { return (double)__uint_as_float(x); }
    DEVICE double rounded(double x) { return (double)__double2float_rn(x); }
    DEVICE u32 narrowed(double x) { return __float_as_uint(__double2float_rn(x)); }
    DEVICE u64 pattern(u32 x) { return x & ~F32_SIGN; }
    DEVICE u32 of_pattern(u64 pattern) { return (u32)pattern; }
    DEVICE bool is_normal(u32 x) {
        u32 bits = x & ~F32_SIGN;
        return bits >= F32_SMALLEST_NORMAL && bits < F32_INFINITY;
    }
    DEVICE i64 ascending(u32 x) { return (i32)x ^ (i32)((u32)((i32)x >> 31) >> 1); }
    DEVICE u32 of_ascending(i64 code) { return (u32)ascending((u32)code); }
};

// x' = code step.
template <class V>
struct Absolute {
    static const bool SPLITS_SIGN = false;
    static const bool HAS_BAND = true;
    DEVICE Coded code(const Parameters& p, typename V::Bits x) {
        Coded coded;
        double wide = V::wide(x);
        double t = __dmul_rn(wide, p.inverse);
        double r = round_to_code(t, coded.code);
        coded.error = magnitude(__dsub_rn(wide, V::rounded(__dmul_rn(r, p.step))));
        bool is_negative_zero = V::is_zero(x) && V::is_negative(x);
        coded.broken = magnitude(t) >= LIMIT_BITS || coded.error > to_bits(p.bound) || is_negative_zero;
        return coded;
    }
    DEVICE typename V::Bits value(const Parameters& p, i64 code) {
        return V::narrowed(__dmul_rn(float_of(code), p.step));
    }
    // The code a parent's value is predicted by: 0 where it has none.
    DEVICE i64 parent_code(const Parameters& p, typename V::Bits x) {
        double t = __dmul_rn(V::wide(x), p.inverse);
        i64 code;
        round_to_code(t, code);
        return magnitude(t) < LIMIT_BITS ? code : 0;
    }
};

// pattern of |x'| = code divisor.
template <class V>
struct Relative {
    static const bool SPLITS_SIGN = true;
    static const bool HAS_BAND = false;
    DEVICE Coded code(const Parameters& p, typename V::Bits x) {
        Coded coded;
        double pattern = __dsub_rn(from_bits(V::pattern(x) | INTEGER_BITS), from_bits(INTEGER_BITS));
        double r = round_to_code(__dmul_rn(pattern, p.inverse), coded.code);
        typename V::Bits decoded = V::of_pattern(integer_of(__dmul_rn(r, p.step)));
        double own = V::wide(V::negated(x, V::is_negative(x)));
        coded.error = magnitude(__dsub_rn(V::wide(decoded), own));
        coded.broken = !V::is_normal(x) || (u64)coded.code > (u64)p.last;
        return coded;
    }
    DEVICE typename V::Bits value(const Parameters& p, i64 code) {
        return V::of_pattern(integer_of(__dmul_rn(float_of(code), p.step)));
    }
    DEVICE i64 parent_code(const Parameters& p, typename V::Bits x) {
        const Coded coded = code(p, x);
        return coded.broken ? 0 : coded.code;
    }
};

// Every value: the bits in ascending order of the values.
template <class V>
struct Exact {
    static const bool SPLITS_SIGN = false;
    static const bool HAS_BAND = false;
    DEVICE Coded code(const Parameters&, typename V::Bits x) {
        Coded coded = {V::ascending(x), false, 0};
        return coded;
    }
    DEVICE typename V::Bits value(const Parameters&, i64 code) { return V::of_ascending(code); }
    DEVICE i64 parent_code(const Parameters&, typename V::Bits x) { return V::ascending(x); }
};

// ---- integers and warps --------------------------------------------------------------------------------------------

DEVICE u32 zigzag(i32 v) { return ((u32)v << 1) ^ (u32)(v >> 31); }
DEVICE u64 zigzag(i64 v) { return ((u64)v << 1) ^ (u64)(v >> 63); }
DEVICE u32 unzigzag(u32 z) { return (z >> 1) ^ (0u - (z & 1)); }
DEVICE u64 unzigzag(u64 z) { return (z >> 1) ^ (0ull - (z & 1)); }

// About the bits of the magnitude, as kernels.rs counts them.
DEVICE u32 length(i32 v) { return __float_as_uint(__fadd_rn(fabsf(__int2float_rn(v)), 0.5f)) >> 23; }
DEVICE u32 length(i64 v) { return 126 + 64 - __clzll((i64)(v < 0 ? 0 - (u64)v : (u64)v)); }

DEVICE u32 warp_of_thread() { return threadIdx.x / WARP; }
DEVICE u32 lane_of_thread() { return threadIdx.x % WARP; }
// The lanes before this one.
DEVICE u32 lanes_before() { return (1u << lane_of_thread()) - 1; }

DEVICE u32 warp_or(u32 x) { return __reduce_or_sync(ALL, x); }
DEVICE u64 warp_or(u64 x) { return (u64)warp_or((u32)(x >> 32)) << 32 | warp_or((u32)x); }
DEVICE u32 warp_sum(u32 x) { return __reduce_add_sync(ALL, x); }

DEVICE u64 warp_max(u64 x) {
    for (u32 offset = WARP / 2; offset > 0; offset /= 2) {
        u64 other = __shfl_xor_sync(ALL, x, offset);
        x = other > x ? other : x;
    }
    return x;
}

// Sum over this lane and those before it.
template <class U>
DEVICE U warp_scan(U x) {
    for (u32 offset = 1; offset < WARP; offset *= 2) {
        U other = __shfl_up_sync(ALL, x, offset);
        x += lane_of_thread() >= offset ? other : 0;
    }
    return x;
}

// Writes the low `bytes` bytes of `bits`.
DEVICE void put(u8* target, u64 bits, u32 bytes) {
    ROLLED for (u32 i = 0; i < bytes; ++i) target[i] = (u8)(bits >> (8 * i));
}

DEVICE u64 get(const u8* source, u32 bytes) {
    u64 bits = 0;
    ROLLED for (u32 i = 0; i < bytes; ++i) bits |= (u64)source[i] << (8 * i);
    return bits;
}

// ---- groups --------------------------------------------------------------------------------------------------------

// As group.rs has it: width:6 | patches:5 | order:2 | class:2 | wide:1.
struct Head {
    u32 width, patches, order, byte_class;
    bool wide;
};

DEVICE u32 head_bits(const Head& h) {
    return h.width | h.patches << 6 | h.order << 11 | h.byte_class << 13 | (h.wide ? 1u << 15 : 0);
}

DEVICE Head head_of(u32 bits) {
    Head h = {bits & 63, bits >> 6 & 31, bits >> 11 & 3, bits >> 13 & 3, bits >> 15 != 0};
    return h;
}

// Whether some encoder writes it.
DEVICE bool is_head(const Head& h) { return (h.wide || (h.width <= 32 && h.byte_class < 3)) && h.order < 3; }
DEVICE u32 head_words(const Head& h) { return h.width * LANES; }
DEVICE u32 head_bytes(const Head& h) { return h.patches * (1 + (1u << h.byte_class)); }

// The cheapest width for the residuals z of a warp; 64 when nothing below that will do.
template <class U>
DEVICE void choose_width(const U (&z)[OWN], Head& head) {
    U bits = 0;
    for (u32 k = 0; k < OWN; ++k) bits |= z[k];
    u32 full = 64 - __clzll((i64)(u64)warp_or(bits));
    head.width = full, head.patches = 0, head.byte_class = 0;
    u32 least = 32 * full;
    ROLLED for (u32 width = full; width-- > 0;) {
        u32 own = 0;
        for (u32 k = 0; k < OWN; ++k) own += z[k] >> width != 0;
        u32 patches = warp_sum(own);
        if (patches > PATCHES) break;
        u32 high_bytes = (full - width + 7) / 8;
        u32 byte_class = high_bytes <= 1 ? 0 : 32 - __clz((i32)(high_bytes - 1));
        u32 cost = 32 * width + patches * (1 + (1u << byte_class));
        if (cost < least) {
            head.width = width, head.patches = patches, head.byte_class = byte_class;
            least = cost;
        }
    }
}

// Chooses order and width for the group whose codes begin at `codes`, of which HISTORY stand before them.
template <class I, class U>
DEVICE Head predict(const i64* codes, u32 stride, u64 (&residuals)[OWN]) {
    const u64 base = (u64)codes[-1];
    const u32 lane = lane_of_thread();
    u32 cost_0 = 0, cost_1 = 0, cost_2 = 0;
    for (u32 k = 0; k < OWN; ++k) {
        const i64* own = codes + 32 * k + lane;
        U q = (U)((u64)*own - base), p = (U)((u64)own[-(i32)stride] - base), o = (U)((u64)own[-2 * (i32)stride] - base);
        cost_0 += length((I)q);
        cost_1 += length((I)(U)(q - p));
        cost_2 += length((I)(U)(q - p - (p - o)));
    }
    cost_0 = warp_sum(cost_0), cost_1 = warp_sum(cost_1), cost_2 = warp_sum(cost_2);
    // The least; of equals the first of 1, 2, 0.
    const u32 order = cost_0 < cost_1 && cost_0 < cost_2 ? 0 : cost_2 < cost_1 ? 2 : 1;
    Head head = {0, 0, order, 0, sizeof(I) == 8};
    U z[OWN];
    for (u32 k = 0; k < OWN; ++k) {
        const i64* own = codes + 32 * k + lane;
        U q = (U)((u64)*own - base), p = (U)((u64)own[-(i32)stride] - base), o = (U)((u64)own[-2 * (i32)stride] - base);
        U residual = order == 0 ? q : order == 1 ? (U)(q - p) : (U)(q - p - (p - o));
        z[k] = zigzag((I)residual);
        residuals[k] = z[k];
    }
    choose_width(z, head);
    return head;
}

// Word `at` of a plane of fields: the low `width` bits, 1 to 32, of z.
DEVICE u32 pack_word(const u32* z, u32 width, u32 at) {
    const u32 mask = ALL >> (32 - width), k = at / LANES, l = at % LANES;
    u32 word = 0;
    ROLLED for (u32 r = 32 * k / width; r * width < 32 * (k + 1) && r < GROUP / LANES; ++r) {
        const i32 place = (i32)(r * width) - (i32)(32 * k);
        const u32 field = z[LANES * r + l] & mask;
        word |= place >= 0 ? field << place : field >> -place;
    }
    return word;
}

// Value i of a plane of fields.
DEVICE u32 unpack_value(const u32* words, u32 width, u32 i) {
    if (width == 0) return 0;
    const u32 bit = i / LANES * width, offset = bit % 32;
    const u32* word = words + bit / 32 * LANES + i % LANES;
    u64 both = word[0];
    if (offset + width > 32) both |= (u64)word[LANES] << 32;
    return (u32)(both >> offset) & (ALL >> (32 - width));
}
