// Blocks of bytes to values: block.rs, coder.rs and group.rs, the decoding half. Follows qb_encode.cuh.
//
// Bytes are trusted in nothing: what no encoder writes leaves the block marked as damaged and its values anything.

// A group's integers in shared memory, so laid out that lanes meet no bank twice, by row or by column.
const u32 LINE = GROUP + GROUP / WARP;
DEVICE u32 slot_of(u32 i) { return i + i / WARP; }

// Codes relative to a history of zeros, in words of 32 bits for narrow groups; the codes before each group.
struct Decoding {
    u64 lines[GROUPS][LINE];
    i64 history[GROUPS][HISTORY];
    u32 heads[GROUPS];
};

// What a block's bytes hold, as every thread of its thread block finds it.
struct Opened {
    bool is_whole;
    u32 kind, exceptions;
    i64 base;
    Head head;
    u32 sign_class;
    const u32* bitmaps;
    const u32* fields;
    const u8* patches;
    const u8* places;
    const u8* bits;
};

DEVICE bool is_class(u32 bits) { return (bits & CLASS_SIGN) <= CLASS_MIXED && bits <= (CLASS_SIGN | CLASS_ZEROS); }

// Heads, classes and where the parts of the warp's group stand. False when the block is shorter than they say, or a
// tile has heads that no encoder writes.
template <bool SPLITS_SIGN, bool TILED>
DEVICE bool find_parts(const u32* block, u32 words, u32 groups, u32 value_bytes, Opened& opened) {
    const u32 g = warp_of_thread(), lane = lane_of_thread(), size = block[0] >> 4 & 15;
    const u32 fixed = 1 + size + (groups + 1) / 2, classes = SPLITS_SIGN ? (groups + 3) / 4 : 0;
    if (size > 2 || fixed + classes > words) return false;
    opened.base = size == 0 ? 0 : size == 1 ? (i64)(i32)block[1] : (i64)((u64)block[1] | (u64)block[2] << 32);
    const bool counts = lane < groups;
    const Head head = head_of(counts ? ((const u16*)(block + 1 + size))[lane] : 0);
    const u32 sign_class = counts && SPLITS_SIGN ? ((const u8*)(block + fixed))[lane] : 0;
    if (__any_sync(ALL, !is_head(head) || !is_class(sign_class))) return false;
    const bool is_wide = __any_sync(ALL, counts && head.wide);
    if (TILED && __any_sync(ALL, counts && (head.order != 0 || head.wide != is_wide))) return false;
    const u32 past = groups + lane;
    const bool ends_heads = lane == 0 && groups % 2 == 1, ends_classes = past < 4 * classes;
    const bool fills_heads = ends_heads && ((const u16*)(block + 1 + size))[past] != 0;
    const bool fills_classes = ends_classes && ((const u8*)(block + fixed))[past] != 0;
    if (__any_sync(ALL, fills_heads || fills_classes)) return false;
    const u32 own_words = head_words(head), own_bytes = head_bytes(head), own_bitmaps = bitmap_words(sign_class);
    const u32 field_words = warp_scan(own_words), bytes = warp_scan(own_bytes), bitmaps = warp_scan(own_bitmaps);
    const u32 fields = fixed + classes + __shfl_sync(ALL, bitmaps, WARP - 1);
    const u32 patches = 4 * (fields + __shfl_sync(ALL, field_words, WARP - 1));
    const u32 places = patches + __shfl_sync(ALL, bytes, WARP - 1);
    const u32 bits = places + 2 * opened.exceptions, end = bits + value_bytes * opened.exceptions;
    if (end > 4 * words || 4 * words - end >= 4) return false;
    const u8* all = (const u8*)block;
    ROLLED for (u32 at = end; at < 4 * words; ++at) {
        if (all[at] != 0) return false;
    }
    opened.head = head_of(__shfl_sync(ALL, head_bits(head), g));
    opened.sign_class = __shfl_sync(ALL, sign_class, g);
    opened.bitmaps = block + fixed + classes + __shfl_sync(ALL, bitmaps - own_bitmaps, g);
    opened.fields = block + fields + __shfl_sync(ALL, field_words - own_words, g);
    opened.patches = all + patches + __shfl_sync(ALL, bytes - own_bytes, g);
    opened.places = all + places;
    opened.bits = all + bits;
    return true;
}

// More words than any block has: the widest groups and an exception at every place take less.
const u32 MOST_WORDS = 1u << 18;

// As block.rs parses: every length is compared with the block's `words`.
template <bool SPLITS_SIGN, class C>
DEVICE Opened open_block(const u32* block, u32 words, const C& cut) {
    Opened opened = Opened();
    if (words == 0 || words > MOST_WORDS) return opened;
    const u32 first = block[0], groups = cut.groups(), value_bytes = sizeof(typename C::Bits);
    opened.kind = first & 15;
    opened.exceptions = first >> 16;
    if (opened.kind > KIND_EXACT || (first >> 6 & 0x3ff) != 0) return opened;
    if (opened.kind == KIND_ZERO || opened.kind == KIND_RAW) {
        opened.is_whole = first >> 4 == 0 && words == (opened.kind == KIND_ZERO ? 1 : raw_words(cut.count, value_bytes));
    } else if (SPLITS_SIGN && opened.kind == KIND_CODED) {
        opened.is_whole = find_parts<true, C::TILED>(block, words, groups, value_bytes, opened);
    } else {
        opened.is_whole = find_parts<false, C::TILED>(block, words, groups, value_bytes, opened);
    }
    return opened;
}

// Sums over each value and those `stride`, 2 `stride`, ... before it.
template <class U>
DEVICE void running_sums(U* line, u32 stride) {
    const u32 lane = lane_of_thread();
    if (stride == 1) {
        U sums[OWN];
        for (u32 j = 0; j < OWN; ++j) sums[j] = line[slot_of(OWN * lane + j)] + (j > 0 ? sums[j - 1] : 0);
        const U before = warp_scan(sums[OWN - 1]) - sums[OWN - 1];
        for (u32 j = 0; j < OWN; ++j) line[slot_of(OWN * lane + j)] = before + sums[j];
        __syncwarp();
        return;
    }
    ROLLED for (u32 distance = stride; distance < GROUP; distance *= 2) {
        U earlier[OWN];
        for (u32 k = 0; k < OWN; ++k) {
            const u32 i = WARP * k + lane;
            earlier[k] = i >= distance ? line[slot_of(i - distance)] : 0;
        }
        __syncwarp();
        for (u32 k = 0; k < OWN; ++k) line[slot_of(WARP * k + lane)] += earlier[k];
        __syncwarp();
    }
}

// Bits above the fields, into 32-bit words `words` apart of the line.
DEVICE void apply_patches(const Opened& opened, u32* low, u32 step) {
    const Head& head = opened.head;
    const u32 lane = lane_of_thread();
    if (lane >= head.patches) return;
    const u32 bytes = 1u << head.byte_class, i = slot_of(opened.patches[lane]);
    const u64 high = get(opened.patches + head.patches + lane * bytes, bytes) << head.width;
    // Places of damaged bytes may coincide.
    atomicOr(low + step * i, (u32)high);
    if (step == 2) atomicOr(low + step * i + 1, (u32)(high >> 32));
}

// The warp's group as it would be after zeros; its words are little-endian.
template <class U>
DEVICE void open_group(const Opened& opened, u32 stride, U* line) {
    const Head& head = opened.head;
    const u32 lane = lane_of_thread(), low_width = head.width < 32 ? head.width : 32;
    for (u32 k = 0; k < OWN; ++k) {
        const u32 i = WARP * k + lane;
        u64 z = unpack_value(opened.fields, low_width, i);
        if (sizeof(U) == 8) z |= (u64)unpack_value(opened.fields + low_width * LANES, head.width - low_width, i) << 32;
        line[slot_of(i)] = (U)z;
    }
    __syncwarp();
    if (head.patches != 0) apply_patches(opened, (u32*)line, sizeof(U) / 4);
    __syncwarp();
    for (u32 k = 0; k < OWN; ++k) line[slot_of(WARP * k + lane)] = unzigzag(line[slot_of(WARP * k + lane)]);
    __syncwarp();
    ROLLED for (u32 order = 0; order < head.order; ++order) running_sums(line, stride);
}

// Place i of a group opened after zeros.
DEVICE u64 opened_code(const u64* line, bool wide, u32 i) {
    return wide ? line[slot_of(i)] : ((const u32*)line)[slot_of(i)];
}

// A code from what stands after zeros and from the two codes before of its class modulo the stride. All is linear,
// so sums in 64 bits give those of 32.
DEVICE i64 continued(u64 opened, const Head& head, u32 steps, i64 base, i64 once, i64 twice) {
    const u64 p = (u64)once - (u64)base, o = (u64)twice - (u64)base;
    u64 code = opened;
    if (head.order > 0) code += p;
    if (head.order > 1) code += steps * (p - o);
    return (i64)((u64)base + (head.wide ? code : (u64)(i64)(i32)code));
}

// The codes before each group, group after group, by the first warp.
DEVICE void find_histories(i64 base, u32 groups, u32 stride, Decoding& s) {
    const u32 j = lane_of_thread() % HISTORY, i = GROUP - HISTORY + j;
    i64 own = base;
    ROLLED for (u32 g = 0; g < groups; ++g) {
        if (lane_of_thread() < HISTORY) s.history[g][j] = own;
        const Head head = head_of(s.heads[g]);
        const i64 last = __shfl_sync(ALL, own, HISTORY - 1);
        const i64 once = __shfl_sync(ALL, own, HISTORY - stride + i % stride);
        const i64 twice = __shfl_sync(ALL, own, HISTORY - 2 * stride + i % stride);
        own = continued(opened_code(s.lines[g], head.wide, i), head, i / stride + 1, last, once, twice);
    }
}

DEVICE bool bit_of(const u32* map, u32 i) { return map[i / 32] >> (i % 32) & 1; }

// Where values go, and those of the parent at the same places, or null.
template <class V, class C>
struct Target {
    typedef typename V::Bits Bits;
    Bits* values;
    const Bits* parent;
    C cut;
    __device__ Target(Bits* all, const Bits* parents, const C& own)
        : values(all + own.first), parent(parents == nullptr ? nullptr : parents + own.first), cut(own) {}
};

// The value of a code at a place of the warp's group; signs and zeros where codes are magnitudes.
template <class V, class L, class C>
DEVICE void write_value(const Parameters& p, const Opened& opened, const Target<V, C>& target, u32 place, i64 code) {
    if (!target.cut.has(place)) return;
    const u64 index = target.cut.index(place);
    const bool has_parent = target.parent != nullptr;
    const typename V::Bits parent = has_parent ? target.parent[index] : 0;
    if (has_parent) code = (i64)((u64)code + (u64)L::parent_code(p, parent));
    typename V::Bits x = L::value(p, code);
    if (L::SPLITS_SIGN) {
        const u32 i = place % GROUP, sign = opened.sign_class & CLASS_SIGN;
        const u32* zeros = opened.bitmaps + (sign == CLASS_MIXED ? LANES : 0);
        if ((opened.sign_class & CLASS_ZEROS) && bit_of(zeros, i)) x = 0;
        const bool is_minus = sign == CLASS_MIXED ? bit_of(opened.bitmaps, i) : sign == CLASS_MINUS;
        x = V::negated(x, is_minus != (has_parent && V::is_negative(parent)));
    }
    target.values[index] = x;
}

// The warp's values of a line, but for exceptions.
template <class V, class L>
DEVICE void write_values(const Parameters& p, const Opened& opened, const Decoding& s,
                         const Target<V, LineCut<V> >& target) {
    const u32 g = warp_of_thread(), stride = target.cut.stride;
    const i64* history = s.history[g];
    ROLLED for (u32 k = 0; k < OWN; ++k) {
        const u32 i = WARP * k + lane_of_thread(), c = i % stride;
        const i64 once = history[HISTORY - stride + c], twice = history[HISTORY - 2 * stride + c];
        const u64 own = opened_code(s.lines[g], opened.head.wide, i);
        const i64 code = continued(own, opened.head, i / stride + 1, history[HISTORY - 1], once, twice);
        write_value<V, L>(p, opened, target, g * GROUP + i, code);
    }
}

// The warp's groups as they would be after zeros.
DEVICE void open_own_group(const Opened& opened, u32 stride, Decoding& s) {
    if (opened.head.wide) open_group(opened, stride, s.lines[warp_of_thread()]);
    else open_group(opened, stride, (u32*)s.lines[warp_of_thread()]);
}

template <class V, class L>
DEVICE void open_values(const Parameters& p, const Opened& opened, Decoding& s,
                        const Target<V, LineCut<V> >& target) {
    const u32 g = warp_of_thread(), groups = target.cut.groups(), stride = target.cut.stride;
    if (g < groups) {
        if (lane_of_thread() == 0) s.heads[g] = head_bits(opened.head);
        open_own_group(opened, stride, s);
    }
    __syncthreads();
    if (g == 0) find_histories(opened.base, groups, stride, s);
    __syncthreads();
    if (g < groups) write_values<V, L>(p, opened, s, target);
}

template <class V, class L>
DEVICE void open_values(const Parameters& p, const Opened& opened, Decoding& s,
                        const Target<V, TileCut<V> >& target) {
    const Window& window = *target.cut.window;
    const u32 first = warp_of_thread() * GROUP + lane_of_thread();
    u64* tile = &s.lines[0][0];
    open_own_group(opened, 1, s);
    __syncthreads();
    u64 d[OWN];
    UNROLLED for (u32 k = 0; k < OWN; ++k) {
        const u32 residual = residual_of(first + WARP * k);
        d[k] = opened_code(s.lines[residual / GROUP], opened.head.wide, residual % GROUP);
    }
    __syncthreads();
    if (window.is_fitted) {
        for (u32 k = 0; k < OWN; ++k) tile[first + WARP * k] = d[k];
        __syncthreads();
        if (opened.head.wide) fitted_codes<i64>(window, tile);
        else fitted_codes<i32>(window, tile);
    } else {
        tile_sums(d, tile);
    }
    __syncthreads();
    ROLLED for (u32 k = 0; k < OWN; ++k) {
        const u32 place = first + WARP * k;
        const i64 q = opened.head.wide ? (i64)tile[place] : (i64)(i32)tile[place];
        write_value<V, L>(p, opened, target, place, (i64)((u64)opened.base + (u64)q));
    }
}

// The values of a block that is stored as they are.
template <class V, class C>
DEVICE void read_raw(const u32* block, const Target<V, C>& target) {
    const u32 words = sizeof(typename V::Bits) / 4;
    ROLLED for (u32 place = threadIdx.x; place < BLOCK; place += THREADS) {
        if (!target.cut.has(place)) continue;
        const u32* own = block + 1 + words * target.cut.rank(place);
        const u64 high = words == 2 ? (u64)own[words - 1] << 32 : 0;
        target.values[target.cut.index(place)] = (typename V::Bits)(own[0] | high);
    }
}

// Values stored exactly. Encoders write their places in ascending order; of equal places the last counts.
// False for a place outside the block.
template <class V, class C>
DEVICE bool write_exceptions(const Opened& opened, const Target<V, C>& target) {
    const u32 bytes = sizeof(typename V::Bits), padded = target.cut.groups() * GROUP;
    bool is_outside = false, is_unordered = false;
    ROLLED for (u32 e = threadIdx.x; e < opened.exceptions; e += THREADS) {
        const u32 place = (u32)get(opened.places + 2 * e, 2);
        const u32 before = e > 0 ? (u32)get(opened.places + 2 * e - 2, 2) : 0;
        is_outside |= place >= padded;
        is_unordered |= e > 0 && place <= before;
    }
    if (__syncthreads_or(is_outside)) return false;
    const bool is_serial = __syncthreads_or(is_unordered);
    const u32 first = is_serial ? (threadIdx.x == 0 ? 0 : opened.exceptions) : threadIdx.x;
    ROLLED for (u32 e = first; e < opened.exceptions; e += is_serial ? 1 : THREADS) {
        const u32 place = (u32)get(opened.places + 2 * e, 2);
        const typename V::Bits x = (typename V::Bits)get(opened.bits + bytes * e, bytes);
        if (target.cut.has(place)) target.values[target.cut.index(place)] = x;
    }
    return true;
}

// Where the blocks are: all words, where each block begins in them, and how many it has.
struct Blocks {
    const u32* all;
    const u64* offsets;
    const u32* words;
};

// Block `blockIdx.x`; `damaged` says 1 for it when its bytes are not what an encoder writes.
template <class V, class L, class C>
DEVICE void decode(const Parameters& p, const Blocks& from, const Target<V, C>& target, u32* damaged) {
    typedef Exact<V> E;
    __shared__ Decoding s;
    const u32* block = from.all + from.offsets[blockIdx.x];
    const Opened opened = open_block<L::SPLITS_SIGN>(block, from.words[blockIdx.x], target.cut);
    bool is_whole = opened.is_whole;
    if (is_whole && opened.kind == KIND_RAW) {
        read_raw<V>(block, target);
    } else if (is_whole) {
        if (opened.kind == KIND_EXACT) open_values<V, E>(p, opened, s, target);
        else open_values<V, L>(p, opened, s, target);
        __syncthreads();
        if (opened.exceptions > 0) is_whole = write_exceptions<V>(opened, target);
    }
    if (threadIdx.x == 0) damaged[blockIdx.x] = !is_whole;
}

#define QB_DECODE(NAME, V, L, CUT)                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                                          \
        NAME(Parameters p, Window w, const u32* all, const u64* offsets, const u32* words, const V::Bits* parent,     \
             V::Bits* values, u32* damaged) {                                                                         \
        const Blocks from = {all, offsets, words};                                                                    \
        const Target<V, CUT<V> > target(values, parent, CUT<V>(w, blockIdx.x));                                       \
        decode<V, L<V> >(p, from, target, damaged);                                                                   \
    }

// Both directions on one lattice and one kind of cut: the host asks for those it needs, because each takes a second or
// two to compile.
#define QB_KERNELS(V, L, CUT)                                                                                         \
    QB_ENCODE(qb_encode, V, L, CUT)                                                                                   \
    QB_DECODE(qb_decode, V, L, CUT)
