// Blocks of values to bytes: block.rs, coder.rs and group.rs, the encoding half. Follows qb_tile.cuh.

// What a thread block shares. Codes first; then, of each group, a plane of the residuals' low words and one of the
// high ones, which take as much room.
struct Encoding {
    union {
        i64 codes[HISTORY + BLOCK];
        u32 planes[GROUPS][2][GROUP];
    } room;
    i32 last_held[GROUPS];
    u64 error[GROUPS];
    u32 head[GROUPS], sign_class[GROUPS], n_exceptions[GROUPS];
    // Bit i of word k is value 32 k + i of the group.
    u32 exceptions[GROUPS][LANES], signs[GROUPS][LANES], zeros[GROUPS][LANES];
};

// What a warp knows of its group once the block is laid out.
struct Group {
    Head head;
    u32 words_before, bytes_before, bitmaps_before, exceptions_before;
};

// The values of a block, and those of the parent at the same places, or null.
template <class V, class C>
struct Source {
    typedef typename V::Bits Bits;
    const Bits* values;
    const Bits* parent;
    C cut;
    __device__ Source(const Bits* all, const Bits* parents, const C& own)
        : values(all + own.first), parent(parents == nullptr ? nullptr : parents + own.first), cut(own) {}
    __device__ Bits at(u32 place) const { return values[cut.nearest(place)]; }
    __device__ Bits parent_at(u32 place) const { return parent[cut.nearest(place)]; }
    __device__ bool has_parent() const { return parent != nullptr; }
};

// Where the parts of a block stand.
struct Layout {
    bool fails, is_zero;
    i64 base;
    u32 words, bitmaps, fields, exceptions, bytes, patch_bytes;
};

DEVICE u32 base_size(i64 base) { return base == 0 ? 0 : base == (i64)(i32)base ? 1 : 2; }
DEVICE u32 bitmap_words(u32 sign_class) {
    return LANES * (((sign_class & CLASS_SIGN) == CLASS_MIXED) + ((sign_class & CLASS_ZEROS) != 0));
}
DEVICE u32 raw_words(u32 count, u32 bytes) { return (4 + count * bytes + 3) / 4; }

// Codes of this warp's group into `room`; notes exceptions, signs and zeros. What holds: lane k < 8 has word k.
template <class V, class L, class C>
DEVICE u32 quantise(const Parameters& p, const Source<V, C>& source, Encoding& s) {
    const u32 first = warp_of_thread() * GROUP, lane = lane_of_thread();
    u32 held = 0;
    u64 error = 0;
    BY_TWOS for (u32 k = 0; k < OWN; ++k) {
        const u32 place = first + WARP * k + lane;
        const typename V::Bits x = source.at(place);
        const Coded coded = L::code(p, x);
        s.room.codes[HISTORY + place] = coded.code;
        if (!coded.broken && coded.error > error) error = coded.error;
        const bool is_zero = L::SPLITS_SIGN && V::is_zero(x);
        const u32 holds = __ballot_sync(ALL, !coded.broken);
        const u32 zeros = L::SPLITS_SIGN ? __ballot_sync(ALL, is_zero) : 0;
        const bool is_turned = L::SPLITS_SIGN && source.has_parent() && V::is_negative(source.parent_at(place));
        const u32 signs = L::SPLITS_SIGN ? __ballot_sync(ALL, V::is_negative(x) != is_turned) : 0;
        if (lane == k) {
            held = holds;
            s.exceptions[warp_of_thread()][k] = ~holds & ~zeros;
            if (L::SPLITS_SIGN) s.zeros[warp_of_thread()][k] = zeros, s.signs[warp_of_thread()][k] = signs;
        }
    }
    error = warp_max(error);
    if (lane == 0) s.error[warp_of_thread()] = error;
    return held;
}

// Codes of the warp's group become those relative to the parent's. Where all values hold, the parent's codes are kept
// within the dead band.
template <class V, class L, class C>
DEVICE void subtract_parent(const Parameters& p, const Source<V, C>& source, bool all_hold, Encoding& s) {
    const u32 first = warp_of_thread() * GROUP + lane_of_thread();
    const bool holds_codes = L::HAS_BAND && all_hold && p.dead_band >= 0;
    u64 largest = 0;
    ROLLED for (u32 k = 0; k < OWN; ++k) {
        const u32 place = first + WARP * k;
        const i64 old = L::parent_code(p, source.parent_at(place));
        i64 code = s.room.codes[HISTORY + place];
        if (holds_codes) {
            const double x = V::wide(source.at(place));
            const u64 old_error = magnitude(__dsub_rn(x, V::wide(L::value(p, old))));
            if (old_error <= to_bits(p.dead_band)) code = old;
            const u64 error = magnitude(__dsub_rn(x, V::wide(L::value(p, code))));
            largest = error > largest ? error : largest;
        }
        s.room.codes[HISTORY + place] = (i64)((u64)code - (u64)old);
    }
    if (!holds_codes) return;
    largest = warp_max(largest);
    if (lane_of_thread() == 0) s.error[warp_of_thread()] = largest;
}

// Place of the last bit set in words 0 to 7 of a bitmap; -1 without.
DEVICE i32 last_set(u32 map) {
    const u32 words = __ballot_sync(ALL, map != 0);
    const u32 k = words == 0 ? 0 : 31 - __clz((i32)words);
    const u32 word = __shfl_sync(ALL, map, k);
    return words == 0 ? -1 : (i32)(32 * k + 31 - __clz((i32)word));
}

DEVICE i32 first_set(u32 map) {
    const u32 words = __ballot_sync(ALL, map != 0);
    const u32 k = words == 0 ? 0 : __ffs((i32)words) - 1;
    const u32 word = __shfl_sync(ALL, map, k);
    return words == 0 ? -1 : (i32)(32 * k + __ffs((i32)word) - 1);
}

// What has no code takes the one before: of the block, or the first of its first group, or 0. Reads codes that
// hold and writes others, so that warps need not wait for each other.
DEVICE void fill_gaps(u32 held, Encoding& s) {
    const u32 g = warp_of_thread(), lane = lane_of_thread();
    i32 before = -1;
    ROLLED for (u32 earlier = 0; earlier < g; ++earlier) {
        if (s.last_held[earlier] >= 0) before = (i32)(earlier * GROUP) + s.last_held[earlier];
    }
    const i32 first = first_set(held);
    if (g == 0) before = first;
    ROLLED for (u32 k = 0; k < OWN; ++k) {
        const u32 word = __shfl_sync(ALL, held, k), earlier = word & lanes_before();
        const u32 start = g * GROUP + WARP * k;
        const i32 from = earlier != 0 ? (i32)(start + 31 - __clz((i32)earlier)) : before;
        if ((word >> lane & 1) == 0) s.room.codes[HISTORY + start + lane] = from < 0 ? 0 : s.room.codes[HISTORY + from];
        if (word != 0) before = (i32)(start + 31 - __clz((i32)word));
    }
}

// Sign and zero class of the warp's group.
DEVICE u32 classify(const Encoding& s) {
    const u32 g = warp_of_thread(), lane = lane_of_thread();
    const u32 negative = warp_sum(lane < LANES ? __popc((i32)s.signs[g][lane]) : 0);
    const u32 sign = negative == 0 ? CLASS_PLUS : negative == GROUP ? CLASS_MINUS : CLASS_MIXED;
    return sign | (warp_or(lane < LANES ? s.zeros[g][lane] : 0) != 0 ? CLASS_ZEROS : 0);
}

// Whether 32 bits hold the differences of the warp's group and its history.
DEVICE bool is_narrow(const i64* codes) {
    const u64 base = (u64)codes[-1];
    const u32 lane = lane_of_thread();
    u64 excess = 0;
    for (u32 k = 0; k < OWN; ++k) excess |= (u64)codes[WARP * k + lane] - base + NARROW;
    if (lane < HISTORY) excess |= (u64)codes[(i32)lane - (i32)HISTORY] - base + NARROW;
    return !__any_sync(ALL, excess >= 2 * (u64)NARROW);
}

// The words and bytes of all groups together, and of those before the warp's.
template <class L>
DEVICE Layout lay_out(u32 groups, u32 value_bytes, i64 base, const Encoding& s, Group& group) {
    const u32 g = warp_of_thread(), lane = lane_of_thread();
    const bool counts = lane < groups;
    const Head head = head_of(counts ? s.head[lane] & 0xffff : 0);
    const u32 sign_class = counts ? s.sign_class[lane] : 0;
    const u32 words = warp_scan(head_words(head)), bytes = warp_scan(head_bytes(head));
    const u32 bitmaps = warp_scan(bitmap_words(sign_class));
    const u32 exceptions = warp_scan(counts ? s.n_exceptions[lane] : 0);
    group.words_before = __shfl_sync(ALL, words - head_words(head), g);
    group.bytes_before = __shfl_sync(ALL, bytes - head_bytes(head), g);
    group.bitmaps_before = __shfl_sync(ALL, bitmaps - bitmap_words(sign_class), g);
    group.exceptions_before = __shfl_sync(ALL, exceptions - (counts ? s.n_exceptions[lane] : 0), g);
    Layout layout;
    layout.fails = __any_sync(ALL, counts && s.head[lane] > 0xffff);
    layout.base = base;
    layout.exceptions = __shfl_sync(ALL, exceptions, WARP - 1);
    layout.patch_bytes = __shfl_sync(ALL, bytes, WARP - 1);
    const u32 field_words = __shfl_sync(ALL, words, WARP - 1);
    layout.bitmaps = 1 + base_size(base) + (groups + 1) / 2 + (L::SPLITS_SIGN ? (groups + 3) / 4 : 0);
    layout.fields = layout.bitmaps + __shfl_sync(ALL, bitmaps, WARP - 1);
    layout.bytes = 4 * (layout.fields + field_words);
    layout.words = (layout.bytes + layout.patch_bytes + layout.exceptions * (2 + value_bytes) + 3) / 4;
    const bool is_plain = !__any_sync(ALL, sign_class != CLASS_PLUS);
    layout.is_zero = base == 0 && field_words + layout.patch_bytes + layout.exceptions == 0 && is_plain;
    return layout;
}

// Residuals and head of the warp's group of a line.
template <class V>
DEVICE Head residuals(const LineCut<V>& cut, const Encoding& s, u64 (&z)[OWN]) {
    const i64* codes = s.room.codes + HISTORY + warp_of_thread() * GROUP;
    if (warp_of_thread() >= cut.groups()) return Head();
    return is_narrow(codes) ? predict<i32, u32>(codes, cut.stride, z) : predict<i64, u64>(codes, cut.stride, z);
}

// Residuals and head of the warp's group of a tile.
template <class V>
DEVICE Head residuals(const TileCut<V>& cut, const Encoding& s, u64 (&z)[OWN]) {
    const RelativeCodes q = {s.room.codes + HISTORY, (u64)s.room.codes[HISTORY]};
    if (is_narrow_tile(*cut.window, q)) return tile_residuals<i32>(*cut.window, q, z);
    return tile_residuals<i64>(*cut.window, q, z);
}

// Codes a block, up to its bytes.
template <class V, class L, class C>
DEVICE Layout plan(const Parameters& p, const Source<V, C>& source, Encoding& s, Group& group) {
    const u32 g = warp_of_thread(), lane = lane_of_thread(), groups = source.cut.groups();
    const bool is_active = g < groups;
    u32 held = 0;
    __syncthreads();
    if (is_active) {
        held = quantise<V, L>(p, source, s);
        const bool all_hold = !__any_sync(ALL, lane < OWN && held != ALL);
        if (source.has_parent()) subtract_parent<V, L>(p, source, all_hold, s);
        const i32 last = last_set(held);
        if (lane == 0) s.last_held[g] = last;
    }
    __syncthreads();
    if (is_active && __any_sync(ALL, lane < OWN && held != ALL)) fill_gaps(held, s);
    __syncthreads();
    const i64 base = s.room.codes[HISTORY];
    if (g == 0) {
        if (lane < HISTORY) s.room.codes[lane] = base;
        __syncwarp();
    }
    u64 z[OWN];
    group.head = residuals(source.cut, s, z);
    if (is_active) {
        const u32 exceptions = warp_sum(lane < LANES ? __popc((i32)s.exceptions[g][lane]) : 0);
        const u32 sign_class = L::SPLITS_SIGN ? classify(s) : (u32)CLASS_PLUS;
        if (lane == 0) {
            // A width of 64 has no head.
            s.head[g] = group.head.width == 64 ? 1u << 16 : head_bits(group.head);
            s.n_exceptions[g] = exceptions;
            s.sign_class[g] = sign_class;
        }
    }
    __syncthreads();
    for (u32 k = 0; is_active && k < OWN; ++k) {
        s.room.planes[g][0][WARP * k + lane] = (u32)z[k];
        if (group.head.wide) s.room.planes[g][1][WARP * k + lane] = (u32)(z[k] >> 32);
    }
    return lay_out<L>(groups, sizeof(typename V::Bits), base, s, group);
}

// First word, base, heads and classes.
template <class L>
DEVICE void write_front(u32 kind, u32 groups, const Layout& layout, const Encoding& s, u32* target) {
    const u32 t = threadIdx.x, size = base_size(layout.base), head_words = (groups + 1) / 2;
    if (t == 0) target[0] = kind | size << 4 | layout.exceptions << 16;
    if (t < size) target[1 + t] = (u32)((u64)layout.base >> (32 * t));
    u16* heads = (u16*)(target + 1 + size);
    if (t < 2 * head_words) heads[t] = t < groups ? (u16)s.head[t] : 0;
    u8* classes = (u8*)(target + 1 + size + head_words);
    if (L::SPLITS_SIGN && t < (groups + 3) / 4 * 4) classes[t] = t < groups ? (u8)s.sign_class[t] : 0;
}

// Fields and patches of the warp's group.
DEVICE void write_group(const Layout& layout, const Group& group, const Encoding& s, u32* target) {
    const u32 g = warp_of_thread(), lane = lane_of_thread(), width = group.head.width;
    u32* fields = target + layout.fields + group.words_before;
    const u32 low_width = width < 32 ? width : 32;
    ROLLED for (u32 at = lane; at < low_width * LANES; at += WARP) fields[at] = pack_word(s.room.planes[g][0], low_width, at);
    fields += low_width * LANES;
    ROLLED for (u32 at = lane; at < (width - low_width) * LANES; at += WARP) {
        fields[at] = pack_word(s.room.planes[g][1], width - low_width, at);
    }
    if (group.head.patches == 0) return;
    u8* places = (u8*)target + layout.bytes + group.bytes_before;
    const u32 bytes = 1u << group.head.byte_class;
    u32 before = 0;
    ROLLED for (u32 k = 0; k < OWN; ++k) {
        u64 high = s.room.planes[g][0][WARP * k + lane];
        if (group.head.wide) high |= (u64)s.room.planes[g][1][WARP * k + lane] << 32;
        high >>= width;
        const u32 outliers = __ballot_sync(ALL, high != 0);
        if (high != 0) {
            const u32 patch = before + __popc((i32)(outliers & lanes_before()));
            places[patch] = (u8)(WARP * k + lane);
            put(places + group.head.patches + patch * bytes, high, bytes);
        }
        before += __popc((i32)outliers);
    }
}

// Places, then bits, of all exceptions; the warp's are written by itself.
template <class V, class C>
DEVICE void write_exceptions(const Source<V, C>& source, const Layout& layout, const Group& group, const Encoding& s,
                             u32* target) {
    const u32 g = warp_of_thread(), lane = lane_of_thread(), bytes = sizeof(typename V::Bits);
    u8* places = (u8*)target + layout.bytes + layout.patch_bytes;
    u8* bits = places + 2 * layout.exceptions;
    u32 before = group.exceptions_before;
    ROLLED for (u32 k = 0; k < OWN; ++k) {
        const u32 word = s.exceptions[g][k];
        const u32 place = g * GROUP + WARP * k + lane;
        if (word >> lane & 1) {
            const u32 at = before + __popc((i32)(word & lanes_before()));
            put(places + 2 * at, place, 2);
            put(bits + bytes * at, source.at(place), bytes);
        }
        before += __popc((i32)word);
    }
}

// Writes the block that was planned.
template <class V, class L, class C>
DEVICE void emit(u32 kind, const Source<V, C>& source, const Layout& layout, const Group& group, const Encoding& s,
                 u32* target) {
    const u32 g = warp_of_thread(), lane = lane_of_thread(), groups = source.cut.groups();
    if (kind == KIND_CODED && layout.is_zero) {
        if (threadIdx.x == 0) target[0] = KIND_ZERO;
        return;
    }
    write_front<L>(kind, groups, layout, s, target);
    const u32 end = layout.bytes + layout.patch_bytes + layout.exceptions * (2 + (u32)sizeof(typename V::Bits));
    if (threadIdx.x < 4 * layout.words - end) ((u8*)target)[end + threadIdx.x] = 0;
    if (g >= groups) return;
    const u32 sign_class = s.sign_class[g];
    u32* bitmaps = target + layout.bitmaps + group.bitmaps_before;
    const bool is_mixed = (sign_class & CLASS_SIGN) == CLASS_MIXED;
    if (is_mixed && lane < LANES) bitmaps[lane] = s.signs[g][lane];
    if ((sign_class & CLASS_ZEROS) && lane < LANES) bitmaps[(is_mixed ? LANES : 0) + lane] = s.zeros[g][lane];
    __syncwarp();
    write_group(layout, group, s, target);
    if (layout.exceptions != 0) write_exceptions<V>(source, layout, group, s, target);
}

template <class V, class C>
DEVICE void emit_raw(const Source<V, C>& source, u32* target) {
    const u32 words = sizeof(typename V::Bits) / 4;
    if (threadIdx.x == 0) target[0] = KIND_RAW;
    ROLLED for (u32 place = threadIdx.x; place < BLOCK; place += THREADS) {
        if (!source.cut.has(place)) continue;
        const u64 bits = source.values[source.cut.index(place)];
        u32* own = target + 1 + words * source.cut.rank(place);
        own[0] = (u32)bits;
        if (words == 2) own[1] = (u32)(bits >> 32);
    }
}

// Where all blocks go: slots of raw_words(BLOCK) words, the words of each block, its largest error.
struct Slots {
    u32* slots;
    u32* words;
    u64* errors;
};

// The block of `source`. No block is larger than its values as they are, so each fits its slot.
template <class V, class L, class C>
DEVICE void encode(const Parameters& p, const Source<V, C>& source, const Slots& to) {
    typedef Exact<V> E;
    __shared__ Encoding s;
    const u32 bytes = sizeof(typename V::Bits);
    const u32 limit = raw_words(source.cut.count, bytes);
    u32* target = to.slots + (u64)blockIdx.x * raw_words(BLOCK, bytes);
    Group group;
    const Layout coded = plan<V, L>(p, source, s, group);
    __syncthreads();
    u64 error = 0;
    ROLLED for (u32 g = 0; g < source.cut.groups(); ++g) error = s.error[g] > error ? s.error[g] : error;
    u32 taken = coded.is_zero ? 1 : coded.words;
    bool is_written = !coded.fails && taken <= limit;
    if (is_written) emit<V, L>(KIND_CODED, source, coded, group, s, target);
    if (coded.fails || coded.exceptions > MANY_EXCEPTIONS) {
        const Layout exact = plan<V, E>(p, source, s, group);
        __syncthreads();
        if (!exact.fails && exact.words <= limit && (coded.fails || exact.words < taken)) {
            emit<V, E>(KIND_EXACT, source, exact, group, s, target);
            is_written = true, taken = exact.words, error = 0;
        }
    }
    if (!is_written) {
        emit_raw<V>(source, target);
        taken = limit, error = 0;
    }
    if (threadIdx.x == 0) to.words[blockIdx.x] = taken, to.errors[blockIdx.x] = error;
}

// Where each of `n` blocks begins, in words, and after them all the end; one thread block of THREADS.
DEVICE void scan_words(const u32* words, u32 n, u64* offsets) {
    __shared__ u64 sums[GROUPS];
    const u32 each = (n + THREADS - 1) / THREADS, first = threadIdx.x * each;
    u64 own = 0;
    for (u32 i = first; i < first + each && i < n; ++i) own += words[i];
    u64 before = warp_scan(own);
    if (lane_of_thread() == WARP - 1) sums[warp_of_thread()] = before;
    __syncthreads();
    before -= own;
    for (u32 w = 0; w < warp_of_thread(); ++w) before += sums[w];
    for (u32 i = first; i < first + each && i < n; ++i) {
        offsets[i] = before;
        before += words[i];
    }
    if (threadIdx.x == THREADS - 1) offsets[n] = before;
}

// Block `blockIdx.x` from its slot to its place.
DEVICE void compact(const u32* slots, u32 slot_words, const u32* words, const u64* offsets, u32* target) {
    const u32* source = slots + (u64)blockIdx.x * slot_words;
    target += offsets[blockIdx.x];
    ROLLED for (u32 i = threadIdx.x; i < words[blockIdx.x]; i += blockDim.x) target[i] = source[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) qb_scan(const u32* words, u32 n, u64* offsets) {
    scan_words(words, n, offsets);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    qb_compact(const u32* slots, u32 slot_words, const u32* words, const u64* offsets, u32* target) {
    compact(slots, slot_words, words, offsets, target);
}

#define QB_ENCODE(NAME, V, L, CUT)                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                                          \
        NAME(Parameters p, Window w, const V::Bits* values, const V::Bits* parent, u32* slots, u32* words,            \
             u64* errors) {                                                                                           \
        const Source<V, CUT<V> > source(values, parent, CUT<V>(w, blockIdx.x));                                       \
        const Slots to = {slots, words, errors};                                                                      \
        encode<V, L<V> >(p, source, to);                                                                              \
    }
