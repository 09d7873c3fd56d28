/* recoup/mfem.hpp: checkpoints for MFEM's iterative solvers, by their monitor. MFEM 4.9 or newer, with doubles, on one
 * rank.
 *
 *     mfem::CGSolver solver;
 *     solver.SetRelTol(1e-8), solver.SetPreconditioner(P), solver.SetOperator(A);
 *     recoup::MfemSolve saved(solver, b, x, "dir=ckpt interval=20it");
 *     saved.restore();
 *     solver.Mult(b, x);
 *     saved.close();
 *
 * CGSolver restarts from the newest iterate and the direction it went last. GMRESSolver and FGMRESSolver are saved at the
 * ends of cycles, where a restart costs nothing. Other solvers restart from the iterate that their monitor is given.
 * MFEM measures a relative tolerance by the residual that a solve starts with; a restored solve keeps the one of the
 * first.
 */
#ifndef RECOUP_MFEM_HPP
#define RECOUP_MFEM_HPP

#include <mfem.hpp>
#include <recoup/solve.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

namespace recoup {

namespace detail {

/* MFEM's words for the sums of a deflation. */
struct MfemAlgebra {
    static double dot(const mfem::Vector &a, const mfem::Vector &b) { return a * b; }
    static void add(mfem::Vector &y, double s, const mfem::Vector &x) { y.Add(s, x); }
};

/* What MFEM keeps to its solvers, and has no call for. */
struct MfemSettings : mfem::IterativeSolver {
    static double relative(const mfem::IterativeSolver &solver) { return solver.*(&MfemSettings::rel_tol); }
    static double absolute(const mfem::IterativeSolver &solver) { return solver.*(&MfemSettings::abs_tol); }
    static const mfem::Operator *A(const mfem::IterativeSolver &solver) { return solver.*(&MfemSettings::oper); }
    static mfem::Solver *&preconditioner(mfem::IterativeSolver &solver) { return solver.*(&MfemSettings::prec); }
    static auto monitor(mfem::IterativeSolver &solver) -> decltype(solver.*(&MfemSettings::controller)) &
    {
        return solver.*(&MfemSettings::controller);
    }
};
struct MfemGmres : mfem::GMRESSolver {
    static int cycle(const mfem::GMRESSolver &solver) { return solver.*(&MfemGmres::m); }
};
struct MfemFgmres : mfem::FGMRESSolver {
    static int cycle(const mfem::FGMRESSolver &solver) { return solver.*(&MfemFgmres::m); }
};

/* The length of a cycle; 0 of a method without. */
inline int mfem_cycle(const mfem::IterativeSolver &solver)
{
    if (const auto *gmres = dynamic_cast<const mfem::GMRESSolver *>(&solver)) return MfemGmres::cycle(*gmres);
    if (const auto *fgmres = dynamic_cast<const mfem::FGMRESSolver *>(&solver)) return MfemFgmres::cycle(*fgmres);
    return 0;
}

inline MethodKind mfem_method(const mfem::IterativeSolver &solver)
{
    if (dynamic_cast<const mfem::CGSolver *>(&solver)) return MethodKind::conjugate;
    return mfem_cycle(solver) > 0 ? MethodKind::cyclic : MethodKind::plain;
}

} // namespace detail

/* The program's preconditioner, or none, deflated with a restored direction. */
class MfemPreconditioner : public mfem::Solver {
public:
    using Deflated = Deflation<mfem::Vector, detail::MfemAlgebra>;

    MfemPreconditioner(mfem::Solver *own, Deflated deflation, int size)
        : mfem::Solver(size), own_(own), deflation_(std::move(deflation))
    {
    }

    void Mult(const mfem::Vector &source, mfem::Vector &target) const override
    {
        mfem::Vector across(source);
        const double part = deflation_.project_residual(across);
        if (own_) own_->Mult(across, target);
        else target = across;
        deflation_.project(target, part);
    }
    void SetOperator(const mfem::Operator &A) override
    {
        if (own_) own_->SetOperator(A);
    }

private:
    mfem::Solver *own_;
    Deflated deflation_;
};

/* The checkpoints of one solve. `solver` has its operator and preconditioner, and a monitor if the program has one,
 * which is called on. It gets all back when this ends. */
class MfemSolve : private mfem::IterativeSolverMonitor {
public:
    /* `options` are those of recoup_open. The products with A that verify a lossy version are made on the solver's
     * thread. */
    MfemSolve(mfem::IterativeSolver &solver, const mfem::Vector &b, mfem::Vector &x, const std::string &options)
        : solver_(solver), A_(*Settings::A(solver)), b_(b), x_(x), cycle_(detail::mfem_cycle(solver)),
          relative_(Settings::relative(solver)), absolute_(Settings::absolute(solver)),
          has_guess_(solver.iterative_mode), preconditioner_(Settings::preconditioner(solver)),
          next_(Settings::monitor(solver)),
          solve_(detail::mfem_method(solver), options, static_cast<std::size_t>(x.Size()),
                 Share::rows(0, static_cast<std::size_t>(x.Size())), nullptr)
    {
        const auto apply = [this](const double *from, double *to) {
            const mfem::Vector source(const_cast<double *>(from), A_.Width());
            mfem::Vector target(to, A_.Height());
            A_.Mult(source, target);
        };
        run().problem(apply, Values<const double>(b.HostRead(), static_cast<std::size_t>(b.Size())));
        solver.SetMonitor(*this);
    }
    MfemSolve(const MfemSolve &) = delete;
    MfemSolve &operator=(const MfemSolve &) = delete;
    ~MfemSolve() override
    {
        Settings::monitor(solver_) = next_;
        Settings::preconditioner(solver_) = preconditioner_;
        solver_.SetRelTol(relative_);
        solver_.SetAbsTol(absolute_);
        solver_.iterative_mode = has_guess_;
    }

    /* Brings x back, and returns the iterations done by the processes before this one: 0 where there is no version. */
    std::uint64_t restore()
    {
        if (!has_guess_) x_ = 0.0;
        const std::uint64_t before = solve_.restore(values(x_));
        solver_.iterative_mode = true;
        if (first_norm() > 0) {
            solver_.SetRelTol(0);
            solver_.SetAbsTol(std::max(relative_ * first_norm(), absolute_));
        }
        if (const auto direction = solve_.restored_direction()) deflate(*direction);
        return before;
    }

    Run &run() noexcept { return solve_.run(); }
    double first_norm() const noexcept { return solve_.first_norm(); }
    void close() { solve_.close(); }
    /* Before close(): what the library's own test said; see Solve::converged. */
    void converged(bool has_converged) { solve_.converged(has_converged); }

private:
    using Settings = detail::MfemSettings;
    using Deflated = MfemPreconditioner::Deflated;

    static Values<double> values(mfem::Vector &x) { return {x.HostReadWrite(), static_cast<std::size_t>(x.Size())}; }

    void Reset() override
    {
        mfem::IterativeSolverMonitor::converged = false;
        can_update_ = has_asked_;
        told_ = 0;
        if (next_) next_->Reset();
    }

    /* GMRES is asked for its iterate at the ends of cycles. It has a vector for that only if it was asked before the
     * first iteration, too; without one it would overwrite x. */
    bool RequiresUpdatedSolution() const override
    {
        const bool is_wanted = next_ && next_->RequiresUpdatedSolution();
        const bool is_cycle_end = cycle_ > 0 && (told_ + 1) % cycle_ == 0;
        has_asked_ = is_wanted || (is_solving_ ? can_update_ && is_cycle_end : cycle_ > 0);
        return has_asked_;
    }

    void MonitorResidual(int iteration, double norm, const mfem::Vector &r, bool is_final) override
    {
        residual_ = &r;
        if (next_) next_->MonitorResidual(iteration, norm, r, is_final);
    }

    void MonitorSolution(int iteration, double norm, const mfem::Vector &x, bool is_final) override
    {
        is_solving_ = !is_final;
        told_ = iteration;
        if (!is_final) after(iteration, norm, x);
        if (next_) {
            next_->MonitorSolution(iteration, norm, x, is_final);
            mfem::IterativeSolverMonitor::converged = next_->HasConverged();
        }
    }

    void after(int iteration, double norm, const mfem::Vector &x)
    {
        const bool is_conjugate = solve_.kind() == MethodKind::conjugate;
        const bool is_current = cycle_ == 0 || (can_update_ && iteration % cycle_ == 0);
        // The values are only read: a restore writes to x of the program.
        const auto lend = [&] {
            return Iterate{values(const_cast<mfem::Vector &>(x)), is_conjugate ? residual_->Norml2() : 0};
        };
        // CGSolver reports (B r, r), and stops by its root.
        solve_.after(static_cast<std::uint64_t>(iteration), is_conjugate ? std::sqrt(norm) : norm, is_current, lend);
    }

    void deflate(Values<const double> direction)
    {
        mfem::Vector w(x_), Aw(x_.Size()), r(x_.Size());
        std::copy(direction.data(), direction.data() + direction.size(), w.HostWrite());
        w /= w.Norml2();
        A_.Mult(w, Aw);
        Deflated deflation(w, Aw);
        if (!deflation.is_sound()) return;
        A_.Mult(x_, r);
        subtract(b_, r, r);
        deflation.correct(x_, r);
        deflated_ = std::make_unique<MfemPreconditioner>(preconditioner_, std::move(deflation), x_.Size());
        Settings::preconditioner(solver_) = deflated_.get();
    }

    mfem::IterativeSolver &solver_;
    const mfem::Operator &A_;
    const mfem::Vector &b_;
    mfem::Vector &x_;
    int cycle_, told_ = 0;
    // As the program has set the solver.
    double relative_, absolute_;
    bool has_guess_;
    mfem::Solver *preconditioner_;
    mfem::IterativeSolverMonitor *next_;
    const mfem::Vector *residual_ = nullptr;
    mutable bool has_asked_ = false;
    bool can_update_ = false, is_solving_ = false;
    std::unique_ptr<MfemPreconditioner> deflated_;
    Solve solve_;
};

} // namespace recoup

#endif /* RECOUP_MFEM_HPP */
