/* Diffusion by Trilinos' Belos over Tpetra, with checkpoints of CG and GMRES.
 *
 *     mpicxx -std=c++17 -O2 belos.cpp $(pkg-config --cflags --libs recoup) -lbelos -ltpetra -lkokkoscore -lteuchoscore -o belos
 *     mpirun -n 2 ./belos "dir=ckpt interval=10it" [n] [iteration to be killed after] [cg or gmres]
 *
 * The problem is diffusion through an n x n x n cube whose conductivity varies. Killed, and started again with the
 * same options, on any number of ranks, the solve goes on from the newest version.
 */
#include <BelosPseudoBlockCGIter.hpp>
#include <BelosPseudoBlockGmresSolMgr.hpp>
#include <BelosStatusTestCombo.hpp>
#include <BelosStatusTestGenResNorm.hpp>
#include <BelosStatusTestMaxIters.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <recoup/belos.hpp>
#include <recoup_mpi.h>
#include <string>
#include <vector>

using Matrix = Tpetra::CrsMatrix<double>;
using Vector = Tpetra::Vector<double>;
using MV = Tpetra::MultiVector<double>;
using OP = Tpetra::Operator<double>;
using LO = MV::local_ordinal_type;
using GO = MV::global_ordinal_type;
using Problem = Belos::LinearProblem<double, MV, OP>;
using Solve = recoup::BelosSolve<LO, GO, MV::node_type>;
using Teuchos::RCP, Teuchos::rcp;

/* Conductivity of the layer k: each is between 1 and 10. */
static double conductivity(GO k) { return 5.5 + 4.5 * std::sin(0.7 * static_cast<double>(k)); }

/* The 7-point stencil with zero values around the cube. */
static RCP<Matrix> diffusion(GO n)
{
    const auto map = rcp(new Tpetra::Map<>(static_cast<std::size_t>(n * n * n), 0, Tpetra::getDefaultComm()));
    const auto A = rcp(new Matrix(map, 7));
    for (GO i = map->getMinGlobalIndex(); i <= map->getMaxGlobalIndex(); i++) {
        const GO l = i % n, j = i / n % n, k = i / (n * n);
        const double here = conductivity(k), below = 0.5 * (here + conductivity(k - 1)),
                     above = 0.5 * (here + conductivity(k + 1));
        std::vector<GO> columns{i};
        std::vector<double> values{4 * here + below + above};
        const auto add = [&](bool is_inside, GO column, double value) {
            if (is_inside) columns.push_back(column), values.push_back(-value);
        };
        add(l > 0, i - 1, here), add(l < n - 1, i + 1, here);
        add(j > 0, i - n, here), add(j < n - 1, i + n, here);
        add(k > 0, i - n * n, below), add(k < n - 1, i + n * n, above);
        A->insertGlobalValues(i, static_cast<LO>(columns.size()), values.data(), columns.data());
    }
    A->fillComplete();
    return A;
}

/* z = D^-1 r */
struct Jacobi : OP {
    Vector inverse_diagonal;

    explicit Jacobi(const Matrix &A) : inverse_diagonal(A.getRowMap())
    {
        Vector diagonal(A.getRowMap());
        A.getLocalDiagCopy(diagonal);
        inverse_diagonal.reciprocal(diagonal);
    }
    RCP<const Tpetra::Map<>> getDomainMap() const override { return inverse_diagonal.getMap(); }
    RCP<const Tpetra::Map<>> getRangeMap() const override { return inverse_diagonal.getMap(); }
    void apply(const MV &r, MV &z, Teuchos::ETransp, double alpha, double beta) const override
    {
        z.elementWiseMultiply(alpha, inverse_diagonal, r, beta);
    }
};

/* Stops a process as a failure would, after an iteration. */
struct Killed : Belos::StatusTest<double, MV, OP> {
    int before, killed_after;

    Killed(int before, int killed_after) : before(before), killed_after(killed_after) {}
    Belos::StatusType checkStatus(Belos::Iteration<double, MV, OP> *iteration) override
    {
        if (killed_after > 0 && before + iteration->getNumIters() == killed_after) std::raise(SIGKILL);
        return Belos::Failed;
    }
    Belos::StatusType getStatus() const override { return Belos::Failed; }
    void reset() override {}
    void print(std::ostream &, int) const override {}
};

using Combo = Belos::StatusTestCombo<double, MV, OP>;

/* CG as an iteration: its managers take no test of the program's own. */
static int conjugate_gradients(const RCP<Problem> &problem, const RCP<Combo> &tests)
{
    using Residual = Belos::StatusTestGenResNorm<double, MV, OP>;
    const auto converged = rcp(new Residual(1e-8));
    converged->defineScaleForm(Belos::NormOfRHS, Belos::TwoNorm);
    tests->addStatusTest(converged);
    tests->addStatusTest(rcp(new Belos::StatusTestMaxIters<double, MV, OP>(10000)));
    Teuchos::ParameterList parameters;
    const auto silent = rcp(new Belos::OutputManager<double>(Belos::Errors));
    Belos::PseudoBlockCGIter<double, MV, OP> iteration(problem, silent, tests, parameters);
    problem->setLSIndex({0});
    Belos::CGIterationState<double, MV> start;
    start.R = rcp(new MV(*problem->getInitResVec(), Teuchos::Copy));
    iteration.initializeCG(start);
    iteration.iterate();
    problem->setCurrLS();
    return iteration.getNumIters();
}

static int generalized_minimal_residuals(const RCP<Problem> &problem, const RCP<Combo> &tests)
{
    const auto parameters = rcp(new Teuchos::ParameterList);
    parameters->set("Num Blocks", 30);
    parameters->set("Maximum Restarts", 1000);
    parameters->set("Maximum Iterations", 10000);
    parameters->set("Convergence Tolerance", 1e-8);
    parameters->set("Implicit Residual Scaling", "Norm of RHS");
    parameters->set("Explicit Residual Scaling", "Norm of RHS");
    Belos::PseudoBlockGmresSolMgr<double, MV, OP> solver(problem, parameters);
    solver.setDebugStatusTest(tests);
    solver.solve();
    return solver.getNumIters();
}

static void solve(const std::string &options, GO n, int killed_after, bool is_gmres)
{
    recoup_comm comm;
    if (recoup_mpi_comm(MPI_COMM_WORLD, &comm) != 0) throw std::runtime_error("no communicator");
    const auto A = diffusion(n);
    const auto x = rcp(new Vector(A->getDomainMap())), b = rcp(new Vector(A->getRangeMap()));
    b->putScalar(1.0);
    const auto problem = rcp(new Problem(A, x, b));
    problem->setRightPrec(rcp(new Jacobi(*A)));
    {
        Solve saved(problem, is_gmres ? recoup::MethodKind::cyclic : recoup::MethodKind::conjugate, options, &comm);
        const int before = static_cast<int>(saved.restore());
        const bool is_first = A->getComm()->getRank() == 0;
        if (is_first) std::printf("starts at %d\n", before), std::fflush(stdout);
        const auto tests = rcp(new Combo(Combo::OR));
        tests->addStatusTest(saved.test());
        tests->addStatusTest(rcp(new Killed(before, killed_after)));
        const int done = is_gmres ? generalized_minimal_residuals(problem, tests) : conjugate_gradients(problem, tests);
        saved.close();

        Vector r(*b, Teuchos::Copy);
        A->apply(*x, r, Teuchos::NO_TRANS, -1.0, 1.0);
        const double relative = r.norm2() / b->norm2();
        if (is_first) std::printf("iterations %d, relative residual %.3e\n", before + done, relative);
    }
    recoup_mpi_free(&comm);
}

int main(int argc, char **argv)
{
    const Tpetra::ScopeGuard mpi(&argc, &argv);
    try {
        const std::string options = argc > 1 ? argv[1] : "dir=ckpt interval=10it";
        solve(options, argc > 2 ? std::atoi(argv[2]) : 24, argc > 3 ? std::atoi(argv[3]) : 0,
              argc > 4 && std::string(argv[4]) == "gmres");
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "belos: %s\n", error.what());
        return 1;
    }
}
