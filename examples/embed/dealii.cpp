/* Laplace's equation by finite elements of deal.II, with checkpoints of SolverCG and SolverGMRES.
 *
 *     mpicxx -std=c++17 -O2 dealii.cpp $(pkg-config --cflags --libs recoup) -ldeal.ii -ltbb -o dealii
 *     ./dealii "dir=ckpt interval=10it" [refinements] [iteration to be killed after] [cg or gmres]
 *
 * Killed, and started again with the same options, the solve goes on from the newest version.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deal.II/base/quadrature_lib.h>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/fe_values.h>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/tria.h>
#include <deal.II/lac/affine_constraints.h>
#include <deal.II/lac/dynamic_sparsity_pattern.h>
#include <deal.II/lac/full_matrix.h>
#include <deal.II/lac/precondition.h>
#include <deal.II/lac/sparse_matrix.h>
#include <deal.II/lac/vector.h>
#include <exception>
#include <recoup/dealii.hpp>
#include <string>
#include <vector>

using namespace dealii;

/* -div grad u = 1 in a cube, u = 0 around it. */
struct Problem {
    SparsityPattern pattern;
    SparseMatrix<double> A;
    Vector<double> b;

    explicit Problem(unsigned refinements)
    {
        Triangulation<3> cells;
        GridGenerator::hyper_cube(cells);
        cells.refine_global(refinements);
        const FE_Q<3> elements(1);
        DoFHandler<3> dofs(cells);
        dofs.distribute_dofs(elements);
        AffineConstraints<double> constraints;
        DoFTools::make_zero_boundary_constraints(dofs, constraints);
        constraints.close();
        DynamicSparsityPattern entries(dofs.n_dofs());
        DoFTools::make_sparsity_pattern(dofs, entries, constraints);
        pattern.copy_from(entries);
        A.reinit(pattern);
        b.reinit(dofs.n_dofs());
        assemble(dofs, constraints);
    }

private:
    void assemble(const DoFHandler<3> &dofs, const AffineConstraints<double> &constraints)
    {
        const QGauss<3> points(2);
        FEValues<3> values(dofs.get_fe(), points, update_values | update_gradients | update_JxW_values);
        const unsigned size = dofs.get_fe().n_dofs_per_cell();
        FullMatrix<double> cell_A(size, size);
        Vector<double> cell_b(size);
        std::vector<types::global_dof_index> rows(size);
        for (const auto &cell : dofs.active_cell_iterators()) {
            values.reinit(cell);
            cell_A = 0;
            cell_b = 0;
            for (const unsigned q : values.quadrature_point_indices()) {
                for (const unsigned i : values.dof_indices()) {
                    for (const unsigned j : values.dof_indices()) {
                        cell_A(i, j) += values.shape_grad(i, q) * values.shape_grad(j, q) * values.JxW(q);
                    }
                    cell_b(i) += values.shape_value(i, q) * values.JxW(q);
                }
            }
            cell->get_dof_indices(rows);
            constraints.distribute_local_to_global(cell_A, cell_b, rows, A, b);
        }
    }
};

template <class Solver>
static void solve(Solver &solver, const SolverControl &control, const Problem &problem, const std::string &options,
                  std::uint64_t killed_after)
{
    const auto &A = problem.A;
    const auto &b = problem.b;
    Vector<double> x(b.size()), r(b.size());
    PreconditionJacobi<SparseMatrix<double>> jacobi;
    jacobi.initialize(A);

    recoup::DealiiSolve saved(solver, A, x, b, options);
    const std::uint64_t before = saved.restore();
    std::printf("starts at %llu\n", static_cast<unsigned long long>(before));
    std::fflush(stdout);
    solver.connect([=](unsigned iteration, double, const Vector<double> &) {
        if (before + iteration == killed_after && killed_after > 0) std::raise(SIGKILL);
        return SolverControl::success;
    });
    solver.solve(A, x, b, saved.preconditioner(jacobi));
    saved.close();

    A.vmult(r, x);
    r.sadd(-1.0, 1.0, b);
    std::printf("iterations %llu, relative residual %.3e\n", static_cast<unsigned long long>(before + control.last_step()),
                r.l2_norm() / b.l2_norm());
}

int main(int argc, char **argv)
{
    try {
        const std::string options = argc > 1 ? argv[1] : "dir=ckpt interval=10it";
        const Problem problem(argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 5);
        const std::uint64_t killed_after = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
        // A tolerance that does not depend on where the solve starts: a restarted one stops where the first would have.
        SolverControl control(10000, 1e-8 * problem.b.l2_norm());
        if (argc > 4 && std::string(argv[4]) == "gmres") {
            // The residual of GMRES is then that of x, not that of the preconditioned system.
            SolverGMRES<Vector<double>>::AdditionalData settings(32, true);
            SolverGMRES<Vector<double>> solver(control, settings);
            solve(solver, control, problem, options, killed_after);
        } else {
            SolverCG<Vector<double>> solver(control);
            solve(solver, control, problem, options, killed_after);
        }
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "dealii: %s\n", error.what());
        return 1;
    }
}
