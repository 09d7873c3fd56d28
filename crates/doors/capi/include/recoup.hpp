/* recoup.hpp: recoup.h for C++17, in this header alone. Link librecoup as from C.
 *
 *     recoup::Run run("dir=ckpt interval=20it");
 *     run.protect("x", recoup::Role::iterate, x);
 *     if (auto restored = run.restore()) k = restored->iteration;
 *     after each iteration: run.step(k, norm_r, norm_b);
 *
 * Objects own what they open, and close it when they end. An error is an exception, recoup::Error, with the code of
 * recoup.h; a program without exceptions of its own makes its calls in recoup::expected, which returns a value or the
 * error. Exceptions of a program's callback pass through the library to the call that made it. recoup.h says what each
 * call does, and which codes it has.
 */

#ifndef RECOUP_HPP
#define RECOUP_HPP

#include <recoup.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace recoup {

/* A call that failed. what() is the library's message. */
class Error : public std::runtime_error {
public:
    explicit Error(std::int32_t code) : std::runtime_error(message(code)), code_(code), kind_(recoup_error_kind()) {}

    /* The code of recoup.h, below 0. */
    std::int32_t code() const noexcept { return code_; }
    /* The kind of the error, as RECOUP_KIND_DISK_FULL. */
    std::int32_t kind() const noexcept { return kind_; }

private:
    static std::string message(std::int32_t code)
    {
        std::string words = recoup_message();
        return words.empty() ? recoup_strerror(code) : words;
    }

    std::int32_t code_, kind_;
};

/* A value, or the error of the call that did not return it. */
template <class T>
class Expected {
public:
    Expected(T value) : held_(std::in_place_index<0>, std::move(value)) {}
    Expected(const Error &error) : held_(std::in_place_index<1>, error) {}

    bool has_value() const noexcept { return held_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    /* The value; throws the error if there is none. */
    T &value()
    {
        if (!has_value()) throw error();
        return std::get<0>(held_);
    }
    T &operator*() { return value(); }
    T *operator->() { return &value(); }
    /* The error; std::bad_variant_access if there is a value. */
    const Error &error() const { return std::get<1>(held_); }

private:
    std::variant<T, Error> held_;
};

/* Makes a call, and returns its value or its error; std::monostate for a call that returns nothing. */
template <class Call>
auto expected(Call &&call)
{
    using Value = std::decay_t<decltype(std::forward<Call>(call)())>;
    using Held = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;
    try {
        if constexpr (std::is_void_v<Value>) {
            std::forward<Call>(call)();
            return Expected<Held>(Held{});
        } else {
            return Expected<Held>(std::forward<Call>(call)());
        }
    } catch (const Error &error) {
        return Expected<Held>(error);
    }
}

enum class Role : std::int32_t {
    iterate = RECOUP_ITERATE,
    direction = RECOUP_DIRECTION,
    dynamic = RECOUP_DYNAMIC,
    unchanging = RECOUP_STATIC,
    recurrence = RECOUP_RECURRENCE,
    recomputed = RECOUP_RECOMPUTED,
};

/* How the program continues after a restore; a larger value brings more back. */
enum class Resume : std::int32_t {
    first_guess = RECOUP_FIRST_GUESS,
    restarted = RECOUP_RESTARTED,
    deflated = RECOUP_DEFLATED,
    traditional = RECOUP_TRADITIONAL,
    exact = RECOUP_EXACT,
};

/* What is to be saved now. */
enum class Due : std::int32_t {
    nothing = 0,
    iterate = RECOUP_DUE_ITERATE,
    direction = RECOUP_DUE_DIRECTION,
};

namespace detail {

template <class T>
constexpr std::int32_t element()
{
    using Value = std::remove_cv_t<T>;
    constexpr bool is_bytes = sizeof(Value) == 1 && (std::is_integral_v<Value> || std::is_same_v<Value, std::byte>);
    constexpr bool is_complex =
        std::is_same_v<Value, std::complex<double>> || std::is_same_v<Value, std::complex<float>>;
    static_assert(std::is_same_v<Value, double> || std::is_same_v<Value, float> || is_complex || is_bytes ||
                      (std::is_integral_v<Value> && std::is_signed_v<Value> && sizeof(Value) == 8),
                  "values are double, float, complex ones of these, std::int64_t or bytes");
    if constexpr (std::is_same_v<Value, std::complex<double>>) return RECOUP_C128;
    else if constexpr (std::is_same_v<Value, std::complex<float>>) return RECOUP_C64;
    else if constexpr (std::is_same_v<Value, double>) return RECOUP_F64;
    else if constexpr (std::is_same_v<Value, float>) return RECOUP_F32;
    else if constexpr (is_bytes) return RECOUP_BYTES;
    else return RECOUP_I64;
}

/* A number that one object closes. */
class Owned {
public:
    using Close = std::int32_t (*)(std::uint64_t);

    Owned(std::uint64_t number, Close close) noexcept : number_(number), close_(close) {}
    Owned(Owned &&other) noexcept : number_(std::exchange(other.number_, 0)), close_(other.close_) {}
    Owned &operator=(Owned &&other) noexcept
    {
        if (this != &other) {
            close();
            number_ = std::exchange(other.number_, 0);
            close_ = other.close_;
        }
        return *this;
    }
    ~Owned() { close(); }

    std::uint64_t number() const noexcept { return number_; }

    std::int32_t close() noexcept
    {
        const std::uint64_t number = std::exchange(number_, 0);
        return number == 0 ? RECOUP_OK : close_(number);
    }

private:
    std::uint64_t number_;
    Close close_;
};

inline void check(std::int32_t code)
{
    if (code < 0) throw Error(code);
}

/* Whether values may be lent through this argument: a container that outlives the call, or a view, such as std::span,
 * whose values do. A view lends them for writing even where it is const itself; a container does not. */
template <class Container>
constexpr bool outlives_call()
{
    using Pointer = decltype(std::data(std::declval<const std::remove_reference_t<Container> &>()));
    return std::is_lvalue_reference_v<Container> || !std::is_const_v<std::remove_pointer_t<Pointer>>;
}

} // namespace detail

/* Values in memory of the program: a pointer and their number, or any container or span that has data() and size(). */
template <class T>
class Values {
public:
    Values(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class Container,
              class = std::enable_if_t<std::is_convertible_v<decltype(std::data(std::declval<Container &>())), T *>>>
    Values(Container &container) noexcept : data_(std::data(container)), size_(std::size(container))
    {
    }

    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }

private:
    T *data_;
    std::size_t size_;
};

template <class Container>
Values(Container &) -> Values<std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>>;

/* This rank's part of a variable. */
struct Share {
    std::uint64_t first;
    std::uint64_t global;

    /* Rows from `first` of `global` over all ranks. */
    static Share rows(std::uint64_t first, std::uint64_t global) { return {first, global}; }
    /* Each rank has its own values, of no common shape. */
    static Share local() { return {RECOUP_RANK_LOCAL, 0}; }
    /* Every rank has the same values. */
    static Share replicated() { return {RECOUP_REPLICATED, 0}; }
};

/* What a restore has brought back. */
struct Restored {
    std::uint64_t iteration;
    Resume how;
};

/* One run's checkpoints: a recoup_handle. */
class Run {
public:
    /* `comm` is copied, and what it points to must live as long as the run; NULL for a job of one rank. */
    explicit Run(const std::string &options, const recoup_comm *comm = nullptr)
        : callbacks_(std::make_unique<Callbacks>()), handle_(opened(options, comm), recoup_close)
    {
    }

    Run(Run &&) noexcept = default;
    Run &operator=(Run &&other) noexcept
    {
        if (this != &other) {
            handle_.close();
            callbacks_ = std::move(other.callbacks_);
            handle_ = std::move(other.handle_);
        }
        return *this;
    }
    ~Run() = default;

    /* Lends a variable: the program keeps its memory in place until the run is closed. All rows are this rank's unless
     * `share` says otherwise. */
    template <class T>
    void protect(const std::string &name, Role role, Values<T> values, std::optional<Share> share = std::nullopt)
    {
        static_assert(!std::is_const_v<T>, "a restore writes the values");
        const Share part = share.value_or(Share::rows(0, values.size()));
        check(recoup_protect(number(), name.c_str(), static_cast<std::int32_t>(role), detail::element<T>(),
                             values.data(), values.size(), part.first, part.global));
    }
    template <class Container>
    void protect(const std::string &name, Role role, Container &&values, std::optional<Share> share = std::nullopt)
    {
        static_assert(detail::outlives_call<Container>(), "the values end with the call");
        protect(name, role, Values(values), share);
    }
    /* Lends one number that is the same on every rank. */
    void protect(const std::string &name, Role role, double &number)
    {
        protect(name, role, Values<double>(&number, 1), Share::replicated());
    }

    /* Lends the columns of a block, `rows` values each, `stride` from one to the next: column j is the variable "name.j".
     * All rows are this rank's unless `share` says otherwise. */
    template <class T>
    void protect_block(const std::string &name, Role role, T *values, std::uint64_t rows, std::uint64_t columns,
                       std::uint64_t stride, std::optional<Share> share = std::nullopt)
    {
        static_assert(!std::is_const_v<T>, "a restore writes the values");
        const Share part = share.value_or(Share::rows(0, rows));
        check(recoup_protect_block(number(), name.c_str(), static_cast<std::int32_t>(role), detail::element<T>(), values,
                                   rows, columns, stride, part.first, part.global));
    }

    void grid(const std::string &name, std::uint64_t nx, std::uint64_t ny, std::uint64_t nz)
    {
        check(recoup_grid(number(), name.c_str(), nx, ny, nz));
    }
    /* Variables that have changed since older versions: see recoup_default, recoup_renamed and recoup_dropped. */
    void may_lack(const std::string &name) { check(recoup_default(number(), name.c_str())); }
    void renamed(const std::string &name, const std::string &former)
    {
        check(recoup_renamed(number(), name.c_str(), former.c_str()));
    }
    void dropped(const std::string &name) { check(recoup_dropped(number(), name.c_str())); }
    bool is_default(const std::string &name)
    {
        std::int32_t is_default = 0;
        check(recoup_is_default(number(), name.c_str(), &is_default));
        return is_default != 0;
    }
    void track(const std::string &name) { check(recoup_track(number(), name.c_str())); }
    void touch(const std::string &name, std::uint64_t first, std::uint64_t count)
    {
        check(recoup_touch(number(), name.c_str(), first, count));
    }

    /* Gives the problem A x = b: `apply(x, y)` computes this rank's rows of y = A x. With RECOUP_OPERATOR_ANY_THREAD in
     * `flags`, a thread of the library may call it while the solver works. */
    void problem(std::function<void(const double *, double *)> apply, Values<const double> rhs,
                 std::optional<Share> share = std::nullopt, double frobenius = 0, std::uint32_t flags = 0)
    {
        const Share part = share.value_or(Share::rows(0, rhs.size()));
        auto operation = std::make_unique<Operation>(Operation{callbacks_.get(), std::move(apply)});
        check(recoup_operator(number(), Callbacks::on_apply, operation.get(), rhs.size(), part.first, part.global,
                              rhs.data(), frobenius, flags));
        /* The versions that needed the operation before are made. */
        callbacks_->operation = std::move(operation);
    }
    /* Gives the columns of B of the problem A X = B, `stride` values from one to the next. They replace the right-hand
     * side given to `problem`, which comes before. */
    void columns(const double *rhs, std::uint64_t columns, std::uint64_t stride)
    {
        check(recoup_columns(number(), columns, rhs, stride));
    }
    /* Gives ||b - A x|| of each column of the state that is saved next. */
    void known_columns(Values<const double> residual_norms)
    {
        check(recoup_known_columns(number(), residual_norms.size(), residual_norms.data()));
    }
    void norms(double infinity_norm, double one_norm)
    {
        check(recoup_operator_norms(number(), infinity_norm, one_norm));
    }
    void known(double residual_norm, double direction_squared)
    {
        check(recoup_known(number(), residual_norm, direction_squared));
    }
    bool wants_known()
    {
        std::int32_t wants = 0;
        check(recoup_wants_known(number(), &wants));
        return wants != 0;
    }
    /* Seconds to the end of the job, as the batch system or time_limit gives it; infinity if no end is known. */
    double time_left()
    {
        double seconds = 0;
        check(recoup_time_left(number(), &seconds));
        return seconds;
    }
    /* Whether it is time to save and end. Collective. */
    bool should_stop()
    {
        std::int32_t stop = 0;
        check(recoup_should_stop(number(), &stop));
        return stop != 0;
    }
    /* Called at the end of every restore that brought a version back. */
    void on_restore(std::function<void(std::uint64_t, Resume)> rebuild)
    {
        auto &rebuilds = callbacks_->rebuilds;
        rebuilds.push_back(std::make_unique<Rebuild>(Rebuild{callbacks_.get(), std::move(rebuild)}));
        check(recoup_on_restore(number(), Callbacks::on_rebuild, rebuilds.back().get()));
    }

    /* Brings all variables back from the newest whole version; nothing where there is no version. */
    std::optional<Restored> restore()
    {
        std::uint64_t iteration = 0;
        std::int32_t how = 0;
        const std::int32_t code = recoup_restore(number(), &iteration, &how);
        check(code);
        if (code == RECOUP_NO_VERSION) return std::nullopt;
        return Restored{iteration, static_cast<Resume>(how)};
    }

    /* Brings back the dynamic variables alone, and returns the number of the system to continue with; nothing where there is
     * no version. For runs with the option systems, before the first system is begun. */
    std::optional<std::uint64_t> find_system()
    {
        std::uint64_t index = 0;
        const std::int32_t code = recoup_find_system(number(), &index);
        check(code);
        if (code == RECOUP_NO_VERSION) return std::nullopt;
        return index;
    }
    /* Begins the next system of a run with the option systems, with the problem given last. */
    void begin_system(std::uint64_t index) { check(recoup_begin_system(number(), index)); }

    /* Decides after an iteration whether to save, and saves. */
    void step(std::uint64_t iteration, double residual_norm, double rhs_norm)
    {
        check(recoup_step(number(), iteration, residual_norm, rhs_norm));
    }
    Due due(std::uint64_t iteration, double residual_norm, double rhs_norm)
    {
        std::int32_t due = 0;
        check(recoup_due(number(), iteration, residual_norm, rhs_norm, &due));
        return static_cast<Due>(due);
    }
    void checkpoint(std::uint64_t iteration, double residual_norm, double rhs_norm)
    {
        check(recoup_checkpoint(number(), iteration, residual_norm, rhs_norm));
    }
    /* Waits until all versions taken are made; an error if one could not be. */
    void wait() { check(recoup_wait(number())); }
    /* Waits for at most so many seconds; returns whether all versions taken are made. If not, wait again. */
    bool wait_for(double seconds)
    {
        const std::int32_t code = recoup_wait_for(number(), seconds);
        check(code);
        return code != RECOUP_NOT_YET;
    }
    /* Whether the solve has converged by the program's own test; if it has, the end of the run frees memory tiers. */
    void converged(bool has_converged) { check(recoup_converged(number(), has_converged ? 1 : 0)); }
    recoup_stats_t stats()
    {
        recoup_stats_t stats{};
        check(recoup_stats(number(), &stats));
        return stats;
    }
    /* Closes the run, and tells what the end of the object cannot tell. */
    void close() { check(handle_.close()); }

    /* The handle, for calls of recoup.h. */
    recoup_handle number() const noexcept { return handle_.number(); }

private:
    struct Callbacks;

    struct Operation {
        Callbacks *owner;
        std::function<void(const double *, double *)> apply;
    };

    struct Rebuild {
        Callbacks *owner;
        std::function<void(std::uint64_t, Resume)> call;
    };

    /* What the library calls, at an address that stays when the run is moved. */
    struct Callbacks {
        std::unique_ptr<Operation> operation;
        std::vector<std::unique_ptr<Rebuild>> rebuilds;
        std::mutex lock;
        std::exception_ptr thrown;

        /* Keeps the exception of a callback for the call of the program that it fails. */
        template <class Call>
        std::int32_t guarded(Call &&call) noexcept
        {
            try {
                call();
                return 0;
            } catch (...) {
                const std::lock_guard<std::mutex> held(lock);
                thrown = std::current_exception();
                return 1;
            }
        }
        std::exception_ptr take()
        {
            const std::lock_guard<std::mutex> held(lock);
            return std::exchange(thrown, nullptr);
        }
        static int on_apply(void *context, const double *x, double *y)
        {
            auto *operation = static_cast<Operation *>(context);
            return operation->owner->guarded([&] { operation->apply(x, y); });
        }
        static int on_rebuild(void *context, std::uint64_t iteration, int how)
        {
            auto *rebuild = static_cast<Rebuild *>(context);
            return rebuild->owner->guarded([&] { rebuild->call(iteration, static_cast<Resume>(how)); });
        }
    };

    static recoup_handle opened(const std::string &options, const recoup_comm *comm)
    {
        recoup_handle handle = 0;
        detail::check(recoup_open(options.c_str(), comm, &handle));
        return handle;
    }

    void check(std::int32_t code)
    {
        if (code >= 0) return;
        const bool is_of_callback = code == RECOUP_E_CALLBACK || code == RECOUP_E_COMM || code == RECOUP_E_NOT_SAVED;
        if (is_of_callback) {
            if (auto thrown = callbacks_->take()) std::rethrow_exception(thrown);
        }
        throw Error(code);
    }

    /* What the handle calls ends after it. */
    std::unique_ptr<Callbacks> callbacks_;
    detail::Owned handle_;
};

/* States that are pushed in a forward pass and popped in the reverse. */
class Tape {
public:
    explicit Tape(const std::string &options) : tape_(opened(options), recoup_tape_close) {}

    template <class T>
    void push(std::uint64_t step, Values<T> values)
    {
        detail::check(recoup_tape_push(number(), step, detail::element<T>(), values.data(), values.size()));
    }
    template <class Container>
    void push(std::uint64_t step, const Container &values)
    {
        push(step, Values(values));
    }
    /* Pops the state that comes next, and returns its step; nothing when all were popped. */
    template <class T>
    std::optional<std::uint64_t> pop(Values<T> into)
    {
        std::uint64_t step = 0;
        const std::int32_t code =
            recoup_tape_pop(number(), detail::element<T>(), into.data(), into.size(), &step);
        return some(code, step);
    }
    template <class Container>
    std::optional<std::uint64_t> pop(Container &&into)
    {
        static_assert(detail::outlives_call<Container>(), "the values end with the call");
        return pop(Values(into));
    }
    template <class T>
    void peek(std::uint64_t step, Values<T> into)
    {
        detail::check(recoup_tape_peek(number(), step, detail::element<T>(), into.data(), into.size()));
    }
    template <class Container>
    void peek(std::uint64_t step, Container &&into)
    {
        static_assert(detail::outlives_call<Container>(), "the values end with the call");
        peek(step, Values(into));
    }
    std::optional<std::uint64_t> next()
    {
        std::uint64_t step = 0;
        const std::int32_t code = recoup_tape_next(number(), &step);
        return some(code, step);
    }
    void forget(std::uint64_t step) { detail::check(recoup_tape_forget(number(), step)); }
    void announce(Values<const std::uint64_t> steps)
    {
        detail::check(recoup_tape_announce(number(), steps.data(), steps.size()));
    }
    void turn() { detail::check(recoup_tape_turn(number())); }
    void save() { detail::check(recoup_tape_save(number())); }
    std::size_t size()
    {
        std::uint64_t count = 0;
        detail::check(recoup_tape_count(number(), &count));
        return static_cast<std::size_t>(count);
    }
    std::vector<std::uint64_t> steps()
    {
        std::vector<std::uint64_t> steps(size());
        std::uint64_t count = 0;
        detail::check(recoup_tape_steps(number(), steps.data(), steps.size(), &count));
        steps.resize(static_cast<std::size_t>(count));
        return steps;
    }
    recoup_tape_report_t report()
    {
        recoup_tape_report_t report{};
        detail::check(recoup_tape_report(number(), &report));
        return report;
    }
    /* Names the damaged files that were found when the tape was opened, each with the finding. */
    std::vector<std::string> damaged()
    {
        std::vector<std::string> lines;
        for (std::uint64_t index = 0, count = report().damaged; index < count; ++index) {
            char line[4096];
            detail::check(recoup_tape_damaged(number(), index, line, sizeof line));
            lines.emplace_back(line);
        }
        return lines;
    }
    /* Closes the tape, and tells what the end of the object cannot tell. */
    void close() { detail::check(tape_.close()); }

    /* The tape, for calls of recoup.h. */
    recoup_tape number() const noexcept { return tape_.number(); }

private:
    static recoup_tape opened(const std::string &options)
    {
        recoup_tape tape = 0;
        detail::check(recoup_tape_open(options.c_str(), &tape));
        return tape;
    }
    static std::optional<std::uint64_t> some(std::int32_t code, std::uint64_t step)
    {
        detail::check(code);
        if (code == RECOUP_EMPTY) return std::nullopt;
        return step;
    }

    detail::Owned tape_;
};

} // namespace recoup

#endif /* RECOUP_HPP */
