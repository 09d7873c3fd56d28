/* recoup/dealii.hpp: checkpoints for deal.II's solvers, by their signals. deal.II 9.4 or newer.
 *
 *     SolverCG<Vector<double>> solver(control);
 *     recoup::DealiiSolve saved(solver, A, x, b, "dir=ckpt interval=20it");
 *     saved.restore();
 *     solver.solve(A, x, b, saved.preconditioner(P));
 *     saved.close();
 *
 * SolverCG restarts from the newest iterate and the direction it went last. SolverGMRES and SolverFGMRES are saved at
 * the ends of cycles, where a restart costs nothing. Other solvers restart from the iterate that their signal gives.
 * Vectors are those of doubles with begin() and locally_owned_elements(): Vector<double>, and
 * LinearAlgebra::distributed::Vector<double> with a communicator of recoup_mpi.h.
 */
#ifndef RECOUP_DEALII_HPP
#define RECOUP_DEALII_HPP

#include <deal.II/base/index_set.h>
#include <deal.II/lac/solver_cg.h>
#include <deal.II/lac/solver_control.h>
#include <deal.II/lac/solver_gmres.h>
#include <recoup/solve.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace recoup {

namespace detail {

/* deal.II's words for the sums of a deflation. */
template <class Vector>
struct DealiiAlgebra {
    static double dot(const Vector &a, const Vector &b) { return a * b; }
    static void add(Vector &y, double s, const Vector &x) { y.add(s, x); }
};

template <class Solver, class Vector>
constexpr MethodKind dealii_method()
{
    using dealii::SolverCG, dealii::SolverGMRES, dealii::SolverFGMRES;
    if (std::is_base_of_v<SolverCG<Vector>, Solver>) return MethodKind::conjugate;
    const bool is_cyclic = std::is_base_of_v<SolverGMRES<Vector>, Solver> || std::is_base_of_v<SolverFGMRES<Vector>, Solver>;
    return is_cyclic ? MethodKind::cyclic : MethodKind::plain;
}

template <class Matrix, class = void>
constexpr bool has_norms = false;
template <class Matrix>
constexpr bool has_norms<Matrix, std::void_t<decltype(std::declval<const Matrix &>().frobenius_norm()),
                                             decltype(std::declval<const Matrix &>().linfty_norm()),
                                             decltype(std::declval<const Matrix &>().l1_norm())>> = true;

} // namespace detail

/* The program's preconditioner, deflated with a restored direction. */
template <class Preconditioner, class Vector>
class DealiiPreconditioner {
public:
    using Deflated = Deflation<Vector, detail::DealiiAlgebra<Vector>>;

    DealiiPreconditioner(const Preconditioner &own, const Deflated *deflation) : own_(own), deflation_(deflation) {}

    void vmult(Vector &target, const Vector &source) const
    {
        if (!deflation_) return own_.vmult(target, source);
        Vector across(source);
        const double part = deflation_->project_residual(across);
        own_.vmult(target, across);
        deflation_->project(target, part);
    }

private:
    const Preconditioner &own_;
    const Deflated *deflation_;
};

/* The checkpoints of one solver and one system A x = b, which stay where they are until this ends. */
template <class Matrix, class Vector>
class DealiiSolve {
    static_assert(std::is_same_v<decltype(std::declval<Vector &>().begin()), double *>, "vectors have doubles in one place");

public:
    /* `options` are those of recoup_open. The products with A that verify a lossy version are made on the solver's
     * thread. `comm` is NULL for a job of one rank. */
    template <class Solver>
    DealiiSolve(Solver &solver, const Matrix &A, Vector &x, const Vector &b, const std::string &options,
                const recoup_comm *comm = nullptr)
        : A_(A), x_(x), b_(b), source_(x), target_(x),
          solve_(detail::dealii_method<Solver, Vector>(), options, values(x).size(), share(x), comm),
          slot_(solver.connect([this](unsigned iteration, double norm, const Vector &iterate) {
              after(iteration, norm, iterate);
              return dealii::SolverControl::success;
          }))
    {
        const auto apply = [this](const double *from, double *to) {
            std::copy(from, from + values(source_).size(), source_.begin());
            A_.vmult(target_, source_);
            std::copy(target_.begin(), target_.end(), to);
        };
        const Values<const double> rhs(b.begin(), values(x).size());
        if constexpr (detail::has_norms<Matrix>) {
            run().problem(apply, rhs, share(x), A.frobenius_norm());
            run().norms(A.linfty_norm(), A.l1_norm());
        } else {
            run().problem(apply, rhs, share(x));
        }
    }
    DealiiSolve(const DealiiSolve &) = delete;
    DealiiSolve &operator=(const DealiiSolve &) = delete;

    /* Brings x back, and returns the iterations done by the processes before this one: 0 where there is no version. */
    std::uint64_t restore()
    {
        const std::uint64_t before = solve_.restore(values(x_));
        if (const auto direction = solve_.restored_direction()) deflate(*direction);
        return before;
    }

    /* The preconditioner that solve() is to be given: the program's, and around it the direction that came back. SolverCG
     * with it updates x in every iteration, also where it fuses its loops for some matrices. */
    template <class Preconditioner>
    DealiiPreconditioner<Preconditioner, Vector> preconditioner(const Preconditioner &own) const
    {
        return {own, deflation_.get()};
    }

    Run &run() noexcept { return solve_.run(); }
    double first_norm() const noexcept { return solve_.first_norm(); }
    void close() { solve_.close(); }
    /* Before close(): what the library's own test said; see Solve::converged. */
    void converged(bool has_converged) { solve_.converged(has_converged); }

private:
    using Deflated = Deflation<Vector, detail::DealiiAlgebra<Vector>>;

    static Values<double> values(Vector &x) { return {x.begin(), static_cast<std::size_t>(x.end() - x.begin())}; }
    static Share share(const Vector &x)
    {
        const dealii::IndexSet rows = x.locally_owned_elements();
        return Share::rows(rows.n_elements() > 0 ? rows.nth_index_in_set(0) : 0, x.size());
    }

    /* GMRES tells an iteration again when the cycle has ended and x is new. */
    void after(unsigned iteration, double norm, const Vector &iterate)
    {
        const bool is_told_again = std::exchange(told_, iteration) == iteration;
        const bool is_current = is_told_again || solve_.kind() != MethodKind::cyclic;
        // SolverCG reports the norm of the residual; other solvers may report that of a preconditioned one.
        const double residual_norm = solve_.kind() == MethodKind::conjugate ? norm : 0;
        // The values are only read: a restore writes to x of the program.
        solve_.after(iteration, norm, is_current,
                     [&] { return Iterate{values(const_cast<Vector &>(iterate)), residual_norm}; });
    }

    void deflate(Values<const double> direction)
    {
        Vector w(x_), r(x_);
        std::copy(direction.data(), direction.data() + direction.size(), w.begin());
        w /= w.l2_norm();
        A_.vmult(target_, w);
        auto deflation = std::make_unique<Deflated>(w, target_);
        if (!deflation->is_sound()) return;
        A_.vmult(r, x_);
        r.sadd(-1.0, 1.0, b_);
        deflation->correct(x_, r);
        deflation_ = std::move(deflation);
    }

    const Matrix &A_;
    Vector &x_;
    const Vector &b_;
    Vector source_, target_;
    std::unique_ptr<Deflated> deflation_;
    unsigned told_ = 0;
    Solve solve_;
    boost::signals2::scoped_connection slot_;
};

} // namespace recoup

#endif /* RECOUP_DEALII_HPP */
