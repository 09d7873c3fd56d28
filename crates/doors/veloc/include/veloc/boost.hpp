/* Objects that Boost.Serialization archives, as regions of a checkpoint: mem_protect(id, veloc::boost::serializer(object),
 * veloc::boost::deserializer(object)). Part of recoup, MIT OR Apache-2.0. */

#ifndef RECOUP_VELOC_BOOST_HPP
#define RECOUP_VELOC_BOOST_HPP

#include <exception>

#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>

#include "veloc.hpp"

namespace veloc {
namespace boost {

using namespace ::boost;

/* The object lives as long as it is protected. */
template <class Object> client_t::serializer_t serializer(Object &object) {
    return [&object](std::ostream &stream) { ::boost::archive::binary_oarchive{stream} << object; };
}

template <class Object> client_t::deserializer_t deserializer(Object &object) {
    return [&object](std::istream &stream) {
        try {
            ::boost::archive::binary_iarchive{stream} >> object;
        } catch (const std::exception &) {
            return false;
        }
        return true;
    };
}

} // namespace boost
} // namespace veloc

#endif
