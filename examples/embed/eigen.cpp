/* A preconditioned conjugate gradient loop over Eigen's matrices and vectors, with checkpoints.
 *
 *     c++ -std=c++17 eigen.cpp $(pkg-config --cflags --libs recoup eigen3) -o eigen
 *     ./eigen "dir=ckpt interval=10it" [n] [iteration to be killed after]
 *
 * The problem is diffusion through an n x n x n cube whose conductivity varies. Killed, and started again with the
 * same options, the solve goes on from the newest version.
 */
#include <Eigen/SparseCore>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <recoup/eigen.hpp>
#include <string>
#include <vector>

using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/* Conductivity of the layer k: each is between 1 and 10. */
static double conductivity(int k) { return 5.5 + 4.5 * std::sin(0.7 * k); }

/* The 7-point stencil with zero values around the cube. */
static Matrix diffusion(int n)
{
    const int size = n * n * n;
    std::vector<Eigen::Triplet<double>> entries;
    for (int k = 0, i = 0; k < n; k++) {
        const double here = conductivity(k), below = 0.5 * (here + conductivity(k - 1)),
                     above = 0.5 * (here + conductivity(k + 1));
        for (int j = 0; j < n; j++) {
            for (int l = 0; l < n; l++, i++) {
                entries.emplace_back(i, i, 4 * here + below + above);
                if (l > 0) entries.emplace_back(i, i - 1, -here);
                if (l < n - 1) entries.emplace_back(i, i + 1, -here);
                if (j > 0) entries.emplace_back(i, i - n, -here);
                if (j < n - 1) entries.emplace_back(i, i + n, -here);
                if (k > 0) entries.emplace_back(i, i - n * n, -below);
                if (k < n - 1) entries.emplace_back(i, i + n * n, -above);
            }
        }
    }
    Matrix A(size, size);
    A.setFromTriplets(entries.begin(), entries.end());
    return A;
}

static void solve(const std::string &options, int n, std::uint64_t killed_after)
{
    const Matrix A = diffusion(n);
    const Vector b = Vector::Ones(A.rows()), inverse_diagonal = A.diagonal().cwiseInverse();
    Vector x = Vector::Zero(A.rows()), p = x, r, z, q;
    double rho = 0;

    recoup::Run run(options);
    recoup::eigen::problem(run, A, b);
    recoup::eigen::protect(run, "x", recoup::Role::iterate, x);
    recoup::eigen::protect(run, "p", recoup::Role::recurrence, p);
    run.protect("rho", recoup::Role::recurrence, rho);
    const auto restored = run.restore();

    /* r = b - A x; without the direction of a version, p = M^-1 r */
    r = b - A * x;
    if (!restored || restored->how < recoup::Resume::traditional) {
        p = inverse_diagonal.cwiseProduct(r);
        rho = r.dot(p);
    }
    std::uint64_t k = restored ? restored->iteration : 0;
    std::printf("starts at %llu\n", static_cast<unsigned long long>(k));
    std::fflush(stdout);

    const double norm_b = b.norm();
    double norm_r = r.norm();
    while (norm_r > 1e-8 * norm_b) {
        q.noalias() = A * p;
        const double alpha = rho / p.dot(q), rho_before = rho;
        x += alpha * p;
        r -= alpha * q;
        z = inverse_diagonal.cwiseProduct(r);
        rho = r.dot(z);
        p = z + rho / rho_before * p;
        norm_r = r.norm();
        run.step(++k, norm_r, norm_b);
        if (k == killed_after) std::raise(SIGKILL);
    }

    std::printf("iterations %llu, relative residual %.3e\n", static_cast<unsigned long long>(k),
                (b - A * x).norm() / norm_b);
    run.close();
}

int main(int argc, char **argv)
{
    try {
        const std::string options = argc > 1 ? argv[1] : "dir=ckpt interval=10it";
        solve(options, argc > 2 ? std::atoi(argv[2]) : 32, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0);
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "recoup: %s\n", error.what());
        return 1;
    }
}
