/* Diffusion by finite elements of MFEM, with checkpoints of CGSolver and GMRESSolver.
 *
 *     c++ -std=c++17 -O2 -I$MFEM_DIR/include mfem.cpp $(pkg-config --cflags --libs recoup) -L$MFEM_DIR/lib -lmfem -o mfem
 *     ./mfem "dir=ckpt interval=10it" [elements along each side] [iteration to be killed after] [cg or gmres]
 *
 * Killed, and started again with the same options, the solve goes on from the newest version.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <recoup/mfem.hpp>
#include <string>

/* The monitor of a program that is killed. */
struct Killed : mfem::IterativeSolverMonitor {
    long before = 0, killed_after = 0;

    void MonitorSolution(int iteration, double, const mfem::Vector &, bool) override
    {
        if (before + iteration == killed_after && iteration > 0) std::raise(SIGKILL);
    }
};

/* -div grad u = 1 in a cube, u = 0 around it. */
struct Problem {
    mfem::Mesh mesh;
    mfem::H1_FECollection elements;
    mfem::FiniteElementSpace space;
    mfem::ConstantCoefficient one{1.0};
    mfem::BilinearForm form;
    mfem::LinearForm rhs;
    mfem::Array<int> boundary;
    mfem::SparseMatrix A;
    mfem::GridFunction u;
    mfem::Vector x, b;

    explicit Problem(int n)
        : mesh(mfem::Mesh::MakeCartesian3D(n, n, n, mfem::Element::HEXAHEDRON)), elements(1, 3), space(&mesh, &elements),
          form(&space), rhs(&space), u(&space)
    {
        rhs.AddDomainIntegrator(new mfem::DomainLFIntegrator(one));
        rhs.Assemble();
        form.AddDomainIntegrator(new mfem::DiffusionIntegrator(one));
        form.Assemble();
        space.GetBoundaryTrueDofs(boundary);
        u = 0.0;
        form.FormLinearSystem(boundary, u, rhs, A, x, b);
    }
};

static void solve(mfem::IterativeSolver &solver, Problem &problem, const std::string &options, long killed_after)
{
    mfem::DSmoother jacobi;
    Killed killed;
    solver.SetRelTol(1e-8);
    solver.SetMaxIter(10000);
    solver.SetPreconditioner(jacobi);
    solver.SetOperator(problem.A);
    solver.SetMonitor(killed);

    recoup::MfemSolve saved(solver, problem.b, problem.x, options);
    killed.before = static_cast<long>(saved.restore());
    killed.killed_after = killed_after;
    std::printf("starts at %ld\n", killed.before);
    std::fflush(stdout);
    solver.Mult(problem.b, problem.x);
    saved.close();

    mfem::Vector r(problem.b.Size());
    problem.A.Mult(problem.x, r);
    subtract(problem.b, r, r);
    std::printf("iterations %ld, relative residual %.3e\n", killed.before + solver.GetNumIterations(),
                r.Norml2() / problem.b.Norml2());
}

int main(int argc, char **argv)
{
    try {
        const std::string options = argc > 1 ? argv[1] : "dir=ckpt interval=10it";
        Problem problem(argc > 2 ? std::atoi(argv[2]) : 24);
        const long killed_after = argc > 3 ? std::atol(argv[3]) : 0;
        if (argc > 4 && std::string(argv[4]) == "gmres") {
            mfem::GMRESSolver solver;
            solver.SetKDim(30);
            solve(solver, problem, options, killed_after);
        } else {
            mfem::CGSolver solver;
            solve(solver, problem, options, killed_after);
        }
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "mfem: %s\n", error.what());
        return 1;
    }
}
