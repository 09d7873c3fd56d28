// Serves requests on standard input with the kernels of qb.cuh: a length u64 and that many bytes, answered likewise.
//
// Request: what u32 (0 encode, 1 decode), dtype u32 (0 f64, 1 f32), mode u32 (0 exact, 1 absolute, 2 relative),
// stride u32, step f64, inverse f64, bound f64, last i64, n u64; then the values, or words u32 of each block and
// the blocks.
// Answer to encode: words u32 of each block, error f64 of each block, the blocks. To decode: a flag u32 for each
// block, 1 when damaged, then the values.
#include "cuda_shim.h"

#include "../../src/qb/qb.cuh"
#include "../../src/qb/qb_encode.cuh"
#include "../../src/qb/qb_decode.cuh"

namespace {

struct Request {
    u32 what, dtype, mode, stride;
    Parameters parameters;
    u64 n;
};

typedef std::vector<u8> Bytes;

template <class T>
void append(Bytes& target, const T* source, size_t n) {
    const u8* bytes = (const u8*)source;
    target.insert(target.end(), bytes, bytes + n * sizeof(T));
}

unsigned blocks_of(const Request& r) { return unsigned((r.n + BLOCK - 1) / BLOCK); }

template <class V>
Bytes encode_all(const Request& r, const u8* source) {
    typedef typename V::Bits Bits;
    const unsigned blocks = blocks_of(r), slot_words = raw_words(BLOCK, sizeof(Bits));
    std::vector<Bits> values(r.n);
    if (r.n > 0) memcpy(values.data(), source, r.n * sizeof(Bits));
    // Room that was not cleared: what a block does not write shows.
    std::vector<u32> slots(size_t(blocks) * slot_words, 0xa5a5a5a5u), words(blocks), all(slots.size());
    std::vector<u64> errors(blocks), offsets(blocks + 1);
    const Slots to = {slots.data(), words.data(), errors.data()};
    shim::launch(blocks, THREADS, [&] {
        if (r.mode == 0) encode<V, Exact<V> >(r.parameters, values.data(), r.n, r.stride, to);
        if (r.mode == 1) encode<V, Absolute<V> >(r.parameters, values.data(), r.n, r.stride, to);
        if (r.mode == 2) encode<V, Relative<V> >(r.parameters, values.data(), r.n, r.stride, to);
    });
    shim::launch(1, THREADS, [&] { scan_words(words.data(), blocks, offsets.data()); });
    shim::launch(blocks, GROUP, [&] { compact(slots.data(), slot_words, words.data(), offsets.data(), all.data()); });
    Bytes answer;
    append(answer, words.data(), blocks);
    append(answer, errors.data(), blocks);
    append(answer, all.data(), offsets[blocks]);
    return answer;
}

template <class V>
Bytes decode_all(const Request& r, const u8* source, size_t bytes) {
    typedef typename V::Bits Bits;
    const unsigned blocks = blocks_of(r);
    std::vector<u32> words(blocks), all((bytes - 4 * blocks) / 4), damaged(blocks, 2);
    std::vector<u64> offsets(blocks + 1);
    std::vector<Bits> values(r.n);
    if (blocks > 0) memcpy(words.data(), source, 4 * blocks);
    if (!all.empty()) memcpy(all.data(), source + 4 * blocks, 4 * all.size());
    for (unsigned b = 0; b < blocks; ++b) offsets[b + 1] = offsets[b] + words[b];
    const Blocks from = {all.data(), offsets.data(), words.data()};
    shim::launch(blocks, THREADS, [&] {
        if (r.mode == 0) decode<V, Exact<V> >(r.parameters, from, r.n, r.stride, values.data(), damaged.data());
        if (r.mode == 1) decode<V, Absolute<V> >(r.parameters, from, r.n, r.stride, values.data(), damaged.data());
        if (r.mode == 2) decode<V, Relative<V> >(r.parameters, from, r.n, r.stride, values.data(), damaged.data());
    });
    Bytes answer;
    append(answer, damaged.data(), blocks);
    append(answer, values.data(), r.n);
    return answer;
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
        Bytes answer;
        if (r.what == 0) answer = r.dtype == 0 ? encode_all<F64>(r, rest) : encode_all<F32>(r, rest);
        const size_t size = bytes - sizeof r;
        if (r.what == 1) answer = r.dtype == 0 ? decode_all<F64>(r, rest, size) : decode_all<F32>(r, rest, size);
        const u64 length = answer.size();
        fwrite(&length, sizeof length, 1, stdout);
        fwrite(answer.data(), 1, answer.size(), stdout);
        fflush(stdout);
    }
    return 0;
}
