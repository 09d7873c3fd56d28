// Serves requests on standard input with the kernels of qb.cuh: a length u64 and that many bytes, answered likewise.
//
// Request: what u32 (0 encode, 1 decode), dtype u32 (0 f64, 1 f32), mode u32 (0 exact, 1 absolute, 2 relative),
// flags u32 (1 tiles, 2 a parent), number of blocks u64, Parameters and Window as qb.cuh and qb_cut.cuh have them; then
// the parent, and the values or words u32 of each block and the blocks.
// Answer to encode: words u32 of each block, error f64 of each block, the blocks. To decode: a flag u32 for each
// block, 1 when damaged, then the values.
#include "cuda_shim.h"

#include "../../src/qb/qb.cuh"
#include "../../src/qb/qb_cut.cuh"
#include "../../src/qb/qb_tile.cuh"
#include "../../src/qb/qb_encode.cuh"
#include "../../src/qb/qb_decode.cuh"

namespace {

const u32 TILED = 1, FOLLOWS = 2;

struct Request {
    u32 what, dtype, mode, flags;
    u64 blocks;
    Parameters parameters;
    Window window;
};

typedef std::vector<u8> Bytes;

template <class T>
void append(Bytes& target, const T* source, size_t n) {
    const u8* bytes = (const u8*)source;
    target.insert(target.end(), bytes, bytes + n * sizeof(T));
}

// The next `n` numbers of a request.
template <class T>
std::vector<T> take(const u8*& source, size_t n) {
    std::vector<T> taken(n);
    if (n > 0) memcpy(taken.data(), source, n * sizeof(T));
    source += n * sizeof(T);
    return taken;
}

template <class V>
std::vector<typename V::Bits> take_parent(const Request& r, const u8*& source) {
    return take<typename V::Bits>(source, r.flags & FOLLOWS ? r.window.n : 0);
}

template <class V, class C>
Bytes encode_all(const Request& r, const u8* source) {
    typedef typename V::Bits Bits;
    const unsigned blocks = unsigned(r.blocks), slot_words = raw_words(BLOCK, sizeof(Bits));
    const std::vector<Bits> parent = take_parent<V>(r, source), values = take<Bits>(source, r.window.n);
    // Room that was not cleared: what a block does not write shows.
    std::vector<u32> slots(size_t(blocks) * slot_words, 0xa5a5a5a5u), words(blocks), all(slots.size());
    std::vector<u64> errors(blocks), offsets(blocks + 1);
    const Slots to = {slots.data(), words.data(), errors.data()};
    const Bits* parents = r.flags & FOLLOWS ? parent.data() : nullptr;
    shim::launch(blocks, THREADS, [&] {
        const Source<V, C> own(values.data(), parents, C(r.window, blockIdx.x));
        if (r.mode == 0) encode<V, Exact<V> >(r.parameters, own, to);
        if (r.mode == 1) encode<V, Absolute<V> >(r.parameters, own, to);
        if (r.mode == 2) encode<V, Relative<V> >(r.parameters, own, to);
    });
    shim::launch(1, THREADS, [&] { scan_words(words.data(), blocks, offsets.data()); });
    shim::launch(blocks, GROUP, [&] { compact(slots.data(), slot_words, words.data(), offsets.data(), all.data()); });
    Bytes answer;
    append(answer, words.data(), blocks);
    append(answer, errors.data(), blocks);
    append(answer, all.data(), offsets[blocks]);
    return answer;
}

template <class V, class C>
Bytes decode_all(const Request& r, const u8* source, const u8* end) {
    typedef typename V::Bits Bits;
    const unsigned blocks = unsigned(r.blocks);
    const std::vector<Bits> parent = take_parent<V>(r, source);
    const std::vector<u32> words = take<u32>(source, blocks), all = take<u32>(source, size_t(end - source) / 4);
    std::vector<u32> damaged(blocks, 2);
    std::vector<u64> offsets(blocks + 1);
    std::vector<Bits> values(r.window.n);
    for (unsigned b = 0; b < blocks; ++b) offsets[b + 1] = offsets[b] + words[b];
    const Blocks from = {all.data(), offsets.data(), words.data()};
    const Bits* parents = r.flags & FOLLOWS ? parent.data() : nullptr;
    shim::launch(blocks, THREADS, [&] {
        const Target<V, C> own(values.data(), parents, C(r.window, blockIdx.x));
        if (r.mode == 0) decode<V, Exact<V> >(r.parameters, from, own, damaged.data());
        if (r.mode == 1) decode<V, Absolute<V> >(r.parameters, from, own, damaged.data());
        if (r.mode == 2) decode<V, Relative<V> >(r.parameters, from, own, damaged.data());
    });
    Bytes answer;
    append(answer, damaged.data(), blocks);
    append(answer, values.data(), r.window.n);
    return answer;
}

template <class V>
Bytes answer_to(const Request& r, const u8* source, const u8* end) {
    const bool is_tiled = r.flags & TILED;
    if (r.what == 0) return is_tiled ? encode_all<V, TileCut<V> >(r, source) : encode_all<V, LineCut<V> >(r, source);
    return is_tiled ? decode_all<V, TileCut<V> >(r, source, end) : decode_all<V, LineCut<V> >(r, source, end);
}

bool read_all(void* target, size_t bytes) { return fread(target, 1, bytes, stdin) == bytes; }

}  // namespace

int main() {
    for (u64 bytes; read_all(&bytes, sizeof bytes);) {
        Bytes request(bytes);
        if (bytes < sizeof(Request) || !read_all(request.data(), bytes)) return 1;
        Request r;
        memcpy(&r, request.data(), sizeof r);
        const u8* rest = request.data() + sizeof r;
        const u8* end = request.data() + bytes;
        const Bytes answer = r.dtype == 0 ? answer_to<F64>(r, rest, end) : answer_to<F32>(r, rest, end);
        const u64 length = answer.size();
        fwrite(&length, sizeof length, 1, stdout);
        fwrite(answer.data(), 1, answer.size(), stdout);
        fflush(stdout);
    }
    return 0;
}
