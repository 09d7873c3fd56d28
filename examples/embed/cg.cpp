/* A hand-written conjugate gradient solver for the 3D Poisson equation in C++, with checkpoints.
 *
 *     c++ -std=c++17 cg.cpp $(pkg-config --cflags --libs recoup) -o cg
 *     ./cg "dir=ckpt interval=10it" [n] [iteration to be killed after]
 *
 * Killed, and started again with the same options, it goes on from the newest version.
 */
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <recoup.hpp>
#include <string>
#include <vector>

using Vector = std::vector<double>;

/* y = A x, the 7-point stencil on n x n x n inner points. */
static void apply(int n, const double *x, double *y)
{
    for (int k = 0, i = 0; k < n; k++) {
        for (int j = 0; j < n; j++) {
            for (int l = 0; l < n; l++, i++) {
                double sum = 6 * x[i];
                if (l > 0) sum -= x[i - 1];
                if (l < n - 1) sum -= x[i + 1];
                if (j > 0) sum -= x[i - n];
                if (j < n - 1) sum -= x[i + n];
                if (k > 0) sum -= x[i - n * n];
                if (k < n - 1) sum -= x[i + n * n];
                y[i] = sum;
            }
        }
    }
}

static double dot(const Vector &a, const Vector &b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

static void solve(const std::string &options, int n, std::uint64_t killed_after)
{
    const std::size_t m = static_cast<std::size_t>(n) * n * n;
    Vector x(m), b(m, 1.0), r(m), p(m), q(m);
    double rho = 0;
    const auto residual = [&] {
        apply(n, x.data(), q.data());
        for (std::size_t i = 0; i < m; i++) r[i] = b[i] - q[i];
    };

    recoup::Run run(options);
    run.protect("x", recoup::Role::iterate, x);
    run.protect("p", recoup::Role::recurrence, p);
    run.protect("rho", recoup::Role::recurrence, rho);
    run.grid("x", n, n, n);
    run.problem([n](const double *v, double *av) { apply(n, v, av); }, b, {}, 0, RECOUP_OPERATOR_ANY_THREAD);
    const auto restored = run.restore();

    /* r = b - A x; without the direction of a version, p = r */
    residual();
    if (!restored || restored->how < recoup::Resume::traditional) {
        p = r;
        rho = dot(r, r);
    }
    std::uint64_t k = restored ? restored->iteration : 0;
    std::printf("starts at %llu\n", static_cast<unsigned long long>(k));

    const double norm_b = std::sqrt(dot(b, b));
    double norm_r = std::sqrt(dot(r, r));
    while (norm_r > 1e-8 * norm_b) {
        apply(n, p.data(), q.data());
        const double alpha = rho / dot(p, q), rho_before = rho;
        for (std::size_t i = 0; i < m; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rho = dot(r, r);
        for (std::size_t i = 0; i < m; i++) p[i] = r[i] + rho / rho_before * p[i];
        norm_r = std::sqrt(rho);
        run.step(++k, norm_r, norm_b);
        if (k == killed_after) std::raise(SIGKILL);
    }

    residual();
    std::printf("iterations %llu, relative residual %.3e\n", static_cast<unsigned long long>(k),
                std::sqrt(dot(r, r)) / norm_b);
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
