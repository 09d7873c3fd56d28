/* The C++ interface of VELOC, 1.8 and its main branch, over veloc.h. Header only, C++11; link with -lveloc-client.
 *
 * A call returns whether it worked; where it did not, a line on standard error says why. Collective calls and their
 * meaning are those of veloc.h.
 *
 * Part of recoup, MIT OR Apache-2.0. */

#ifndef RECOUP_VELOC_HPP
#define RECOUP_VELOC_HPP

#include <cstddef>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "veloc.h"

namespace veloc {

/* One process's checkpoints. Deleting it waits for the copy to persistent storage, as VELOC_Finalize(1) does. */
class client_t {
public:
    /* Writes an object; a stream that is no longer good, or an exception, says that it could not. */
    using serializer_t = std::function<void(std::ostream &)>;
    /* Reads it back; false, or an exception, says that it could not. */
    using deserializer_t = std::function<bool(std::istream &)>;
    /* Is told the name and version of each checkpoint that ended well. */
    using observer_t = std::function<void(const std::string &name, int version)>;

    /* ---- What is saved: for checkpoints called name only, or for those whose name has no regions of its own ---- */

    virtual bool mem_protect(int id, void *ptr, std::size_t count, std::size_t base_size,
                             const std::string &name = "default") = 0;
    /* An object that is serialized when a checkpoint takes it, and deserialized when a restart gives it back. */
    virtual bool mem_protect(int id, const serializer_t &serializer, const deserializer_t &deserializer,
                             const std::string &name = "default") = 0;
    virtual bool mem_unprotect(int id, const std::string &name = "default") = 0;
    virtual void mem_clear(const std::string &name = "default") = 0;

    /* type is VELOC_OBSERVE_CKPT_END. Returns whether it is the first observer of its type; a later one takes over. */
    virtual bool register_observer(int type, const observer_t &observer) = 0;

    /* The empty string where there is no such path. */
    virtual std::string route_file(const std::string &original) = 0;
    virtual bool cleanup(const std::string &name) = 0;

    /* ---- Checkpoint ---- */

    virtual bool checkpoint(const std::string &name, int version) = 0;
    virtual bool checkpoint_begin(const std::string &name, int version) = 0;
    virtual bool checkpoint_mem(int mode, const std::set<int> &ids) = 0;
    virtual bool checkpoint_end(bool success) = 0;
    virtual bool checkpoint_wait() = 0;
    virtual bool checkpoint_finished() = 0;

    /* ---- Restart: target_rank is this rank or less than 0; the part of another rank is refused on all ranks ---- */

    virtual int restart_test(const std::string &name, int version, int target_rank = -1) = 0;
    virtual bool restart(const std::string &name, int version, int target_rank = -1) = 0;
    virtual bool restart_begin(const std::string &name, int version, int target_rank = -1) = 0;
    /* Bytes of region id in the version, 0 where it has none. */
    virtual std::size_t recover_size(int id) = 0;
    virtual bool recover_mem(int mode, const std::set<int> &ids) = 0;
    virtual bool restart_end(bool success) = 0;

    virtual ~client_t() {}
};

namespace detail {

/* The client of veloc.h, and the regions that it does not know how to read and write. */
class client_over_c final : public client_t {
    /* A region of memory has neither function. */
    struct region_t {
        serializer_t serializer;
        deserializer_t deserializer;
    };
    using regions_t = std::map<int, region_t>;
    using bytes_t = std::map<int, std::string>;

    int rank;
    std::map<std::string, regions_t> regions;
    std::map<int, observer_t> observers;
    /* Of the checkpoint or restart that is begun. */
    std::string begun;
    int version = 0;

    static bool worked(int code) { return code == VELOC_SUCCESS; }

    /* As VELOC calls the regions without a name. */
    static bool is_common(const std::string &name) { return name == "default"; }

    static bool protect(int id, void *ptr, std::size_t count, std::size_t base_size, const std::string &name) {
        return worked(is_common(name) ? VELOC_Mem_protect(id, ptr, count, base_size)
                                      : VELOC_Region_protect(id, ptr, count, base_size, name.c_str()));
    }

    static bool is_meant(int mode, const std::set<int> &ids, int id) {
        return mode == VELOC_CKPT_ALL || (mode == VELOC_CKPT_SOME) == (ids.count(id) != 0);
    }

    /* The name whose regions the checkpoint that is begun holds. */
    std::string group() const {
        auto own = regions.find(begun);
        return own != regions.end() && !own->second.empty() ? begun : "default";
    }

    /* Makes one call while serialized regions are memory. Nothing in here throws. */
    template <class Call> static bool with_memory(bytes_t &held, const std::string &name, Call call) {
        bool ok = true;
        for (auto &entry : held)
            ok = protect(entry.first, &entry.second[0], entry.second.size(), 1, name) && ok;
        ok = ok && worked(call());
        for (auto &entry : held)
            protect(entry.first, nullptr, 0, 1, name);
        return ok;
    }

    /* Whether a function of the program could do its part. Its exceptions end here: the other ranks wait for this one. */
    template <class Work> bool could(const char *what, int id, Work work) const {
        std::string why = "its function says so";
        try {
            if (work())
                return true;
        } catch (const std::exception &error) {
            why = error.what();
        }
        std::cerr << "veloc: rank " << rank << ": region " << id << " cannot be " << what << ": " << why << std::endl;
        return false;
    }

    bool is_foreign(int target_rank) const {
        if (target_rank < 0 || target_rank == rank)
            return false;
        std::cerr << "veloc: rank " << rank << ": the part of rank " << target_rank
                  << " cannot be restored here, only this rank's own" << std::endl;
        return true;
    }

public:
    explicit client_over_c(int rank_) : rank(rank_) {}

    bool mem_protect(int id, void *ptr, std::size_t count, std::size_t base_size, const std::string &name) override {
        if (!protect(id, ptr, count, base_size, name))
            return false;
        regions[name][id] = region_t();
        return true;
    }

    bool mem_protect(int id, const serializer_t &serializer, const deserializer_t &deserializer,
                     const std::string &name) override {
        if (!serializer || !deserializer || !protect(id, nullptr, 0, 1, name))
            return false;
        regions[name][id] = region_t{serializer, deserializer};
        return true;
    }

    bool mem_unprotect(int id, const std::string &name) override {
        regions[name].erase(id);
        return worked(is_common(name) ? VELOC_Mem_unprotect(id) : VELOC_Region_unprotect(id, name.c_str()));
    }

    void mem_clear(const std::string &name) override {
        regions.erase(name);
        is_common(name) ? VELOC_Mem_clear() : VELOC_Region_clear(name.c_str());
    }

    bool register_observer(int type, const observer_t &observer) override {
        bool is_first = observers.count(type) == 0;
        observers[type] = observer;
        return is_first;
    }

    std::string route_file(const std::string &original) override {
        char routed[VELOC_MAX_NAME];
        return worked(VELOC_Route_file(original.c_str(), routed)) ? routed : "";
    }

    bool cleanup(const std::string &name) override { return worked(VELOC_Cleanup(name.c_str())); }

    /* All ranks make the same calls, whatever one of them fails at. */
    bool checkpoint(const std::string &name, int version_) override {
        if (!checkpoint_begin(name, version_))
            return false;
        bool taken = checkpoint_mem(VELOC_CKPT_ALL, {});
        return checkpoint_end(taken) && taken;
    }

    bool checkpoint_begin(const std::string &name, int version_) override {
        if (!worked(VELOC_Checkpoint_begin(name.c_str(), version_)))
            return false;
        begun = name;
        version = version_;
        return true;
    }

    bool checkpoint_mem(int mode, const std::set<int> &ids) override {
        const std::string name = group();
        bytes_t held;
        for (auto &entry : regions[name]) {
            if (!entry.second.serializer || !is_meant(mode, ids, entry.first))
                continue;
            std::ostringstream out;
            auto serialize = [&] { return entry.second.serializer(out), out.good(); };
            if (!could("serialized", entry.first, serialize))
                return false;
            held[entry.first] = out.str();
        }
        std::vector<int> numbers(ids.begin(), ids.end());
        auto take = [&] { return VELOC_Checkpoint_selective(mode, numbers.data(), static_cast<int>(numbers.size())); };
        return with_memory(held, name, take);
    }

    bool checkpoint_end(bool success) override {
        if (!worked(VELOC_Checkpoint_end(success)))
            return false;
        auto observer = observers.find(VELOC_OBSERVE_CKPT_END);
        if (observer != observers.end() && observer->second)
            observer->second(begun, version);
        return true;
    }

    bool checkpoint_wait() override { return worked(VELOC_Checkpoint_wait()); }

    bool checkpoint_finished() override { return worked(VELOC_Checkpoint_finished_head()); }

    int restart_test(const std::string &name, int version_, int target_rank) override {
        return is_foreign(target_rank) ? VELOC_FAILURE : VELOC_Restart_test(name.c_str(), version_);
    }

    bool restart(const std::string &name, int version_, int target_rank) override {
        if (!restart_begin(name, version_, target_rank))
            return false;
        bool recovered = recover_mem(VELOC_RECOVER_ALL, {});
        return restart_end(recovered) && recovered;
    }

    bool restart_begin(const std::string &name, int version_, int target_rank) override {
        /* The call is collective: no name makes it fail on all ranks. */
        const std::string asked = is_foreign(target_rank) ? "" : name;
        if (!worked(VELOC_Restart_begin(asked.c_str(), version_)))
            return false;
        begun = name;
        version = version_;
        return true;
    }

    std::size_t recover_size(int id) override {
        long long bytes = VELOC_Recover_bytes(id);
        return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
    }

    bool recover_mem(int mode, const std::set<int> &ids) override {
        const std::string name = group();
        bytes_t held;
        for (auto &entry : regions[name])
            if (entry.second.deserializer && is_meant(mode, ids, entry.first) && VELOC_Recover_bytes(entry.first) >= 0)
                held[entry.first].resize(recover_size(entry.first));
        std::vector<int> numbers(ids.begin(), ids.end());
        auto give = [&] { return VELOC_Recover_selective(mode, numbers.data(), static_cast<int>(numbers.size())); };
        if (!with_memory(held, name, give))
            return false;
        for (auto &entry : held) {
            std::istringstream in(entry.second);
            auto deserialize = [&] { return regions[name][entry.first].deserializer(in); };
            if (!could("deserialized", entry.first, deserialize))
                return false;
        }
        return true;
    }

    bool restart_end(bool success) override { return worked(VELOC_Restart_end(success)); }

    ~client_over_c() override {
        shared() = nullptr;
        if (VELOC_Initialized())
            VELOC_Finalize(1);
    }

    /* The client of this process, there or not. */
    static client_over_c *&shared() {
        static client_over_c *client = nullptr;
        return client;
    }

    /* For a start that worked just now, or one before. */
    static client_t *started(int code, int rank) {
        if (!worked(code))
            throw std::runtime_error("veloc: the client cannot start; standard error says why");
        if (shared() == nullptr)
            shared() = new client_over_c(rank);
        return shared();
    }
};

} // namespace detail

/* Returns the client of this process, and starts it where there is none, by VELOC_Init_single or VELOC_Init. Throws
 * std::runtime_error where it cannot start. */
inline client_t *get_client(unsigned int id, const std::string &cfg_file) {
    int code = VELOC_Initialized() ? VELOC_SUCCESS : VELOC_Init_single(id, cfg_file.c_str());
    return detail::client_over_c::started(code, static_cast<int>(id));
}

#ifndef VELOC_NO_MPI
inline client_t *get_client(MPI_Comm comm, const std::string &cfg_file) {
    int rank = -1;
    int code = VELOC_Initialized() ? VELOC_SUCCESS : VELOC_Init(comm, cfg_file.c_str());
    if (code == VELOC_SUCCESS)
        MPI_Comm_rank(comm, &rank);
    return detail::client_over_c::started(code, rank);
}
#endif

} // namespace veloc

#endif
