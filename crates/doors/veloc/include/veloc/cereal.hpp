/* Objects that cereal archives, as regions of a checkpoint: mem_protect(id, veloc::cereal::serializer(object),
 * veloc::cereal::deserializer(object)). Part of recoup, MIT OR Apache-2.0. */

#ifndef RECOUP_VELOC_CEREAL_HPP
#define RECOUP_VELOC_CEREAL_HPP

#include <exception>

#include <cereal/archives/binary.hpp>

#include "veloc.hpp"

namespace veloc {
namespace cereal {

using namespace ::cereal;

/* The object lives as long as it is protected. */
template <class Object> client_t::serializer_t serializer(Object &object) {
    return [&object](std::ostream &stream) {
        ::cereal::BinaryOutputArchive archive{stream};
        archive(object);
    };
}

template <class Object> client_t::deserializer_t deserializer(Object &object) {
    return [&object](std::istream &stream) {
        try {
            ::cereal::BinaryInputArchive archive{stream};
            archive(object);
        } catch (const std::exception &) {
            return false;
        }
        return true;
    };
}

} // namespace cereal
} // namespace veloc

#endif
