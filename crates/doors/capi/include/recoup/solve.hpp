/* recoup/solve.hpp: the checkpoints of a solve A x = b whose loop is a library's. The headers for deal.II, Belos and MFEM
 * stand on it; so may one for another library.
 *
 * Such a library calls the program after each iteration, but neither gives all that the method knows nor takes it back.
 * Every method therefore restarts from the iterate. A conjugate gradient method loses its directions that way. So the
 * last one is saved too, the difference of two iterates, and the restarted method is kept A-orthogonal to it, which
 * brings back nearly all that a plain restart forgets (M. J. D. Powell, 1977, doi 10.1007/BF01593790).
 */
#ifndef RECOUP_SOLVE_HPP
#define RECOUP_SOLVE_HPP

#include <recoup.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace recoup {

/* When the iterate of a method is there, and what is saved with it. */
enum class MethodKind {
    /* After every iteration, alone. */
    plain,
    /* After every iteration, with the last direction. */
    conjugate,
    /* At the ends of cycles, where the method restarts anyway: GMRES. */
    cyclic,
};

/* The iterate of this rank, and ||b - A x||_2 over all ranks where the library has it, else 0: a version is then verified
 * with one product less. */
struct Iterate {
    Values<double> values;
    double residual_norm;
};

/* The run of one solve, between restore() and close(). */
class Solve {
public:
    /* `options` are those of recoup_open, `share` this rank's rows of the vectors, `rows` their number. */
    Solve(MethodKind kind, const std::string &options, std::size_t rows, Share share, const recoup_comm *comm)
        : kind_(kind), share_(share), run_(defaults(kind) + options, comm)
    {
        run_.protect("first_norm", Role::dynamic, first_norm_);
        if (kind == MethodKind::conjugate) {
            direction_.resize(rows);
            run_.protect("d", Role::direction, direction_, share_);
        }
    }
    Solve(const Solve &) = delete;
    Solve &operator=(const Solve &) = delete;

    /* The run, for more variables of the program before restore(), and for its numbers. */
    Run &run() noexcept { return run_; }
    MethodKind kind() const noexcept { return kind_; }

    /* Brings the iterate back to `x`, and returns the iterations done by the processes before this one. */
    std::uint64_t restore(Values<double> x)
    {
        lend(x);
        const auto restored = run_.restore();
        if (!restored) return 0;
        base_ = restored->iteration;
        has_direction_ = kind_ == MethodKind::conjugate && restored->how >= Resume::deflated;
        if (restored->how != Resume::first_guess) return base_;
        // The norm came back with the guess, and is another problem's.
        first_norm_ = 0;
        return 0;
    }

    /* The direction to deflate with, of this rank's rows; nothing, on all ranks, where none came back. */
    std::optional<Values<const double>> restored_direction() const noexcept
    {
        if (!has_direction_) return std::nullopt;
        return Values<const double>(direction_.data(), direction_.size());
    }

    /* The norm that the library reported before the first iteration of all, 0 until it has. A tolerance relative to it
     * stays the same over restarts. */
    double first_norm() const noexcept { return first_norm_; }

    /* Called after each iteration of this process, and with iteration 0 before them. `norm` is the one that the library
     * reports, and `lend_iterate` returns the Iterate. It is called only where `is_current` says that x belongs to this
     * iteration. An iteration may be told twice. */
    template <class LendIterate>
    void after(std::uint64_t iteration, double norm, bool is_current, const LendIterate &lend_iterate)
    {
        if (!std::isfinite(norm)) return;
        if (iteration == 0) {
            if (first_norm_ == 0) first_norm_ = norm;
            return;
        }
        const bool is_new = std::exchange(told_, iteration) != iteration;
        const std::uint64_t number = base_ + iteration;
        if (kind_ == MethodKind::conjugate) {
            after_conjugate(number, norm, lend_iterate);
            return;
        }
        if (is_new && run_.due(number, norm, first_norm_) != Due::nothing) is_due_ = true;
        if (is_due_ && is_current) save(number, norm, lend_iterate());
    }

    /* Whether the library's own test of convergence was met, which recoup knows by the option rtol alone. */
    void converged(bool has_converged) { run_.converged(has_converged); }

    /* Waits for the versions on their way, and closes the run. */
    void close() { run_.close(); }

private:
    /* GMRES restarts anyway, and bears more of a lossy version than CG does. A word of the program comes later, and
     * counts. */
    static std::string defaults(MethodKind kind) { return kind == MethodKind::cyclic ? "method=gmres " : ""; }

    /* A direction is the way from one iterate to the next: it is found due one iteration before it is saved. */
    template <class LendIterate>
    void after_conjugate(std::uint64_t number, double norm, const LendIterate &lend_iterate)
    {
        if (is_due_) {
            const Iterate x = lend_iterate();
            for (std::size_t i = 0; i < before_.size(); ++i) direction_[i] = x.values.data()[i] - before_[i];
            save(number, norm, x);
            return;
        }
        const Due due = run_.due(number + 1, norm, first_norm_);
        is_due_ = due != Due::nothing;
        before_.clear();
        if (due == Due::direction) {
            const Values<double> x = lend_iterate().values;
            before_.assign(x.data(), x.data() + x.size());
        }
    }

    void save(std::uint64_t number, double norm, const Iterate &x)
    {
        lend(x.values);
        if (x.residual_norm > 0) run_.known(x.residual_norm, 0);
        run_.checkpoint(number, norm, first_norm_);
        is_due_ = false;
    }

    /* The iterate where it is now: a library may move it from solve to solve. */
    void lend(Values<double> x)
    {
        if (x.data() == lent_) return;
        run_.protect("x", Role::iterate, x, share_);
        lent_ = x.data();
    }

    MethodKind kind_;
    Share share_;
    double first_norm_ = 0;
    std::vector<double> direction_, before_;
    const double *lent_ = nullptr;
    std::uint64_t base_ = 0, told_ = 0;
    bool is_due_ = false, has_direction_ = false;
    // The run ends before the memory that it was lent.
    Run run_;
};

/* A restarted method kept A-orthogonal to a direction w of the one before. `Algebra` has the library's words:
 * dot(a, b) over all ranks, and add(y, s, x), which is y += s x. */
template <class Vector, class Algebra>
class Deflation {
public:
    Deflation(Vector w, Vector Aw) : w_(std::move(w)), Aw_(std::move(Aw)), wAw_(Algebra::dot(w_, Aw_)) {}

    /* Whether w is a direction at all. Nothing is deflated with another, and the restart is a plain one. */
    bool is_sound() const noexcept { return wAw_ > 0 && std::isfinite(wAw_); }

    /* Solves along w: x += (w . r / w . A w) w */
    void correct(Vector &x, const Vector &r) const { Algebra::add(x, Algebra::dot(w_, r) / wAw_, w_); }

    /* Projects the residual, before the preconditioner: r -= (w . r / w . A w) A w. Returns that part of w. For a symmetric A
     * only rounding makes one, which costs a large part of the iterations where A is ill-conditioned. */
    [[nodiscard]] double project_residual(Vector &r) const
    {
        const double part = Algebra::dot(w_, r) / wAw_;
        Algebra::add(r, -part, Aw_);
        return part;
    }

    /* Projects what the preconditioner made, and adds the residual's part of w, so that no norm hides it:
     * z += (part - A w . z / w . A w) w (BNN of J. M. Tang et al. 2009, doi 10.1007/s10915-009-9272-6) */
    void project(Vector &z, double part) const { Algebra::add(z, part - Algebra::dot(Aw_, z) / wAw_, w_); }

private:
    Vector w_, Aw_;
    double wAw_;
};

} // namespace recoup

#endif /* RECOUP_SOLVE_HPP */
