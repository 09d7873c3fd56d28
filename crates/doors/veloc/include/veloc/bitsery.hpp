/* Objects that bitsery serializes, as regions of a checkpoint: mem_protect(id, veloc::bitsery::serializer(object),
 * veloc::bitsery::deserializer(object)). Part of recoup, MIT OR Apache-2.0. */

#ifndef RECOUP_VELOC_BITSERY_HPP
#define RECOUP_VELOC_BITSERY_HPP

#include <cstdint>

#include <bitsery/adapter/stream.h>
#include <bitsery/bitsery.h>

#include "veloc.hpp"

namespace veloc {
namespace bitsery {

using namespace ::bitsery;

/* The object lives as long as it is protected. */
template <class Object> client_t::serializer_t serializer(Object &object) {
    return [&object](std::ostream &stream) {
        ::bitsery::Serializer<::bitsery::OutputStreamAdapter> writer{stream};
        writer.object(object);
        writer.adapter().flush();
    };
}

template <class Object> client_t::deserializer_t deserializer(Object &object) {
    return [&object](std::istream &stream) {
        ::bitsery::Deserializer<::bitsery::InputStreamAdapter> reader{stream};
        reader.object(object);
        return reader.adapter().error() == ::bitsery::ReaderError::NoError;
    };
}

} // namespace bitsery
} // namespace veloc

#endif
