/* recoup/belos.hpp: checkpoints for Belos over Tpetra, by a StatusTest. Trilinos 13.2 or newer, one right-hand side.
 *
 *     recoup::BelosSolve saved(problem, recoup::MethodKind::cyclic, "dir=ckpt interval=20it");
 *     saved.restore();
 *     Belos::PseudoBlockGmresSolMgr<double, MV, OP> solver(problem, parameters);
 *     solver.setDebugStatusTest(saved.test());
 *     solver.solve();
 *     saved.close();
 *
 * GMRES is cyclic: it is saved at the ends of cycles, where a restart costs nothing. CG is conjugate: it restarts from the
 * newest iterate and the direction it went last. Belos' managers of CG take no test of a program, so CG is started as
 * an iteration, CGIter or PseudoBlockCGIter, whose StatusTestCombo has saved.test(). Other iterations are plain, and
 * restart from the iterate. A tolerance is to be relative to the norm of the right-hand side ("Norm of RHS"): the
 * initial residual is another one after a restart. Rows of a rank follow one another, and are numbered from 0.
 */
#ifndef RECOUP_BELOS_HPP
#define RECOUP_BELOS_HPP

#include <BelosIteration.hpp>
#include <BelosLinearProblem.hpp>
#include <BelosMultiVecTraits_Tpetra.hpp>
#include <BelosOperatorTraits_Tpetra.hpp>
#include <BelosStatusTest.hpp>
#include <Teuchos_RCP.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <recoup/solve.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace recoup {

namespace detail {

/* Tpetra's words for the sums of a deflation. */
template <class MV>
struct TpetraAlgebra {
    static double dot(const MV &a, const MV &b)
    {
        double product = 0;
        a.dot(b, Teuchos::ArrayView<double>(&product, 1));
        return product;
    }
    static void add(MV &y, double s, const MV &x) { y.update(s, x, 1.0); }
};

template <class MV>
double tpetra_norm(const MV &v)
{
    return std::sqrt(TpetraAlgebra<MV>::dot(v, v));
}

/* The rows of this rank; std::invalid_argument where they are no range. */
template <class MV>
Share tpetra_share(const MV &v)
{
    const auto &map = *v.getMap();
    if (!map.isContiguous() || map.getIndexBase() != 0) {
        throw std::invalid_argument("rows of a rank do not follow one another, or are not numbered from 0");
    }
    const auto first = v.getLocalLength() > 0 ? map.getMinGlobalIndex() : 0;
    return Share::rows(static_cast<std::uint64_t>(first), v.getGlobalLength());
}

/* y = x of values of this rank. */
template <class MV>
void tpetra_fill(MV &y, const double *x)
{
    const auto values = y.get1dViewNonConst();
    std::copy(x, x + values.size(), values.begin());
}

} // namespace detail

/* The program's preconditioner, or none, deflated with a restored direction. */
template <class LO, class GO, class Node>
class BelosPreconditioner : public Tpetra::Operator<double, LO, GO, Node> {
    using MV = Tpetra::MultiVector<double, LO, GO, Node>;
    using OP = Tpetra::Operator<double, LO, GO, Node>;
    using Map = Tpetra::Map<LO, GO, Node>;
    using Deflated = Deflation<MV, detail::TpetraAlgebra<MV>>;

public:
    BelosPreconditioner(Teuchos::RCP<const OP> own, Teuchos::RCP<const Map> map, Deflated deflation)
        : own_(std::move(own)), map_(std::move(map)), deflation_(std::move(deflation))
    {
    }

    Teuchos::RCP<const Map> getDomainMap() const override { return map_; }
    Teuchos::RCP<const Map> getRangeMap() const override { return map_; }

    void apply(const MV &source, MV &target, Teuchos::ETransp mode, double alpha, double beta) const override
    {
        if (mode != Teuchos::NO_TRANS) throw std::invalid_argument("a deflated preconditioner has no transpose");
        MV across(source, Teuchos::Copy);
        const double part = deflation_.project_residual(across);
        MV projected(target.getMap(), target.getNumVectors());
        if (own_.is_null()) projected.update(1.0, across, 0.0);
        else own_->apply(across, projected);
        deflation_.project(projected, part);
        target.update(alpha, projected, beta);
    }

private:
    Teuchos::RCP<const OP> own_;
    Teuchos::RCP<const Map> map_;
    Deflated deflation_;
};

/* A test that never passes, and calls the program after each iteration. */
template <class MV, class OP>
class BelosTest : public Belos::StatusTest<double, MV, OP> {
public:
    using Iteration = Belos::Iteration<double, MV, OP>;

    explicit BelosTest(std::function<void(const Iteration &)> after) : after_(std::move(after)) {}

    Belos::StatusType checkStatus(Iteration *iteration) override
    {
        if (after_) after_(*iteration);
        return status_ = Belos::Failed;
    }
    Belos::StatusType getStatus() const override { return status_; }
    void reset() override { status_ = Belos::Undefined; }
    void print(std::ostream &to, int indent = 0) const override
    {
        to << std::string(static_cast<std::size_t>(indent), ' ') << "recoup: saves, and never stops a solve\n";
    }

    /* Calls nothing any more: a manager may keep the test for longer than the program keeps the solve. */
    void end() { after_ = nullptr; }

private:
    std::function<void(const Iteration &)> after_;
    Belos::StatusType status_ = Belos::Undefined;
};

/* The checkpoints of one solve of `problem`, which has its operator, vectors and preconditioner. It gets its
 * preconditioner back when this ends. */
template <class LO, class GO, class Node>
class BelosSolve {
public:
    using MV = Tpetra::MultiVector<double, LO, GO, Node>;
    using OP = Tpetra::Operator<double, LO, GO, Node>;
    using Problem = Belos::LinearProblem<double, MV, OP>;
    using Test = BelosTest<MV, OP>;

    /* `options` are those of recoup_open. The products with A that verify a lossy version are made on the solver's
     * thread. `comm`, of recoup_mpi.h, is NULL for a job of one rank. */
    BelosSolve(Teuchos::RCP<Problem> problem, MethodKind kind, const std::string &options,
               const recoup_comm *comm = nullptr)
        : problem_(std::move(problem)), left_(problem_->getLeftPrec()), right_(problem_->getRightPrec()),
          map_(problem_->getLHS()->getMap()), source_(map_, 1), target_(map_, 1),
          solve_(kind, options, source_.getLocalLength(), detail::tpetra_share(source_), comm),
          test_(Teuchos::rcp(new Test([this](const auto &iteration) { after(iteration); })))
    {
        if (problem_->getLHS()->getNumVectors() != 1) throw std::invalid_argument("there is more than one right-hand side");
        const auto apply = [this](const double *from, double *to) {
            detail::tpetra_fill(source_, from);
            problem_->getOperator()->apply(source_, target_);
            const auto values = target_.get1dView();
            std::copy(values.begin(), values.end(), to);
        };
        const auto rhs = problem_->getRHS()->get1dView();
        run().problem(apply, Values<const double>(rhs.get(), static_cast<std::size_t>(rhs.size())),
                      detail::tpetra_share(source_));
    }
    BelosSolve(const BelosSolve &) = delete;
    BelosSolve &operator=(const BelosSolve &) = delete;
    ~BelosSolve()
    {
        test_->end();
        if (!is_deflated_) return;
        problem_->setLeftPrec(left_);
        problem_->setRightPrec(right_);
    }

    /* Brings x back and makes the problem ready, as setProblem() does. Returns the iterations done by the processes
     * before this one: 0 where there is no version. */
    std::uint64_t restore()
    {
        std::uint64_t before = 0;
        {
            const auto values = problem_->getLHS()->get1dViewNonConst();
            before = solve_.restore({values.get(), static_cast<std::size_t>(values.size())});
        }
        if (const auto direction = solve_.restored_direction()) deflate(*direction);
        if (!problem_->setProblem()) throw std::invalid_argument("the problem has no operator or no vectors");
        return before;
    }

    /* The test that the solver is to be given. */
    Teuchos::RCP<Belos::StatusTest<double, MV, OP>> test() const { return test_; }

    Run &run() noexcept { return solve_.run(); }
    double first_norm() const noexcept { return solve_.first_norm(); }
    void close() { solve_.close(); }
    /* Before close(): what the library's own test said; see Solve::converged. */
    void converged(bool has_converged) { solve_.converged(has_converged); }

private:
    using Deflated = Deflation<MV, detail::TpetraAlgebra<MV>>;

    void after(const typename Test::Iteration &iteration)
    {
        std::vector<double> norms(1);
        const auto native = iteration.getNativeResiduals(&norms);
        const double norm = native.is_null() ? norms[0] : detail::tpetra_norm(*native);
        // GMRES tells an iteration again when the cycle has ended and x is new.
        const int told = iteration.getNumIters();
        const bool is_told_again = std::exchange(told_, told) == told;
        const bool is_current = is_told_again || solve_.kind() != MethodKind::cyclic;
        Teuchos::RCP<const MV> x;
        Teuchos::ArrayRCP<const double> values;
        solve_.after(static_cast<std::uint64_t>(told), norm, is_current, [&] {
            const auto update = iteration.getCurrentUpdate();
            x = update.is_null() ? problem_->getCurrLHSVec() : problem_->updateSolution(update, false);
            values = x->get1dView();
            // The values are only read: a restore writes to the vector of the problem.
            const Values<double> lent(const_cast<double *>(values.get()), static_cast<std::size_t>(values.size()));
            // CG has the residual itself, other iterations may have that of a preconditioned system.
            return Iterate{lent, solve_.kind() == MethodKind::conjugate ? norm : 0};
        });
    }

    /* Around the preconditioner that is applied last. */
    void deflate(Values<const double> direction)
    {
        MV w(map_, 1), Aw(map_, 1), r(map_, 1);
        detail::tpetra_fill(w, direction.data());
        w.scale(1 / detail::tpetra_norm(w));
        const OP &A = *problem_->getOperator();
        A.apply(w, Aw);
        Deflated deflation(w, Aw);
        if (!deflation.is_sound()) return;
        A.apply(*problem_->getLHS(), r);
        r.update(1.0, *problem_->getRHS(), -1.0);
        deflation.correct(*problem_->getLHS(), r);
        const bool is_right = !right_.is_null();
        const auto deflated = Teuchos::rcp(new BelosPreconditioner<LO, GO, Node>(is_right ? right_ : left_, map_, deflation));
        if (is_right) problem_->setRightPrec(deflated);
        else problem_->setLeftPrec(deflated);
        is_deflated_ = true;
    }

    Teuchos::RCP<Problem> problem_;
    // As the program has set them.
    Teuchos::RCP<const OP> left_, right_;
    Teuchos::RCP<const typename MV::map_type> map_;
    MV source_, target_;
    bool is_deflated_ = false;
    int told_ = 0;
    Solve solve_;
    Teuchos::RCP<Test> test_;
};

} // namespace recoup

#endif /* RECOUP_BELOS_HPP */
