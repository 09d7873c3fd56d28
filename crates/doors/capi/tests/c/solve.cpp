/* recoup/solve.hpp: a library's loop that is stopped goes on with the direction it had, or from the end of a cycle. Prints
 * what does not hold. */
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <recoup/solve.hpp>
#include <string>
#include <vector>

using recoup::MethodKind;
using Vector = std::vector<double>;

static int failures = 0;

static void expect(bool holds, const char *claim)
{
    if (!holds) {
        std::printf("not so: %s\n", claim);
        failures++;
    }
}

static constexpr int side = 40;

/* Conductance between the two halves of the grid, where the points of column l meet: over two decades, so that rounding
 * along a deflated direction costs iterations. */
static double tie(int l) { return std::pow(10.0, 1 + 2.0 * l / (side - 1)); }

/* y = A x, the 5-point stencil on side x side inner points, whose halves are tied. */
static Vector product(const Vector &x)
{
    Vector y(x.size());
    for (int j = 0, i = 0; j < side; j++) {
        for (int l = 0; l < side; l++, i++) {
            const double south = j == side / 2 ? tie(l) : 1, north = j == side / 2 - 1 ? tie(l) : 1;
            double sum = (2 + south + north) * x[i];
            if (l > 0) sum -= x[i - 1];
            if (l < side - 1) sum -= x[i + 1];
            if (j > 0) sum -= south * x[i - side];
            if (j < side - 1) sum -= north * x[i + side];
            y[i] = sum;
        }
    }
    return y;
}

struct Algebra {
    static double dot(const Vector &a, const Vector &b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
    static void add(Vector &y, double s, const Vector &x)
    {
        for (std::size_t i = 0; i < y.size(); ++i) y[i] += s * x[i];
    }
};
using Deflated = recoup::Deflation<Vector, Algebra>;

static Vector residual(const Vector &b, const Vector &x)
{
    Vector r = b;
    Algebra::add(r, -1, product(x));
    return r;
}

/* What stops a process. */
struct Stopped {};

/* A library's CG: it knows of nothing but a preconditioner and a monitor. */
static int conjugate_gradients(const Vector &b, Vector &x, const std::function<void(Vector &)> &precondition,
                               const std::function<void(int, double)> &monitor)
{
    Vector r = residual(b, x), z = r, p;
    double norm = std::sqrt(Algebra::dot(r, r)), rho = 0;
    monitor(0, norm);
    int k = 0;
    while (norm > 1e-8 * std::sqrt(Algebra::dot(b, b))) {
        z = r;
        precondition(z);
        const double before = std::exchange(rho, Algebra::dot(r, z));
        if (k == 0) p.assign(b.size(), 0);
        const double beta = k == 0 ? 0 : rho / before;
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = z[i] + beta * p[i];
        const Vector q = product(p);
        const double alpha = rho / Algebra::dot(p, q);
        Algebra::add(x, alpha, p);
        Algebra::add(r, -alpha, q);
        norm = std::sqrt(Algebra::dot(r, r));
        monitor(++k, norm);
    }
    return k;
}

/* A right-hand side without symmetries, the same in each run. */
static Vector some_rhs()
{
    Vector b(side * side);
    std::uint64_t state = 7;
    for (double &value : b) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = static_cast<double>(state >> 40) / (1 << 24) - 0.5;
    }
    return b;
}

/* Iterations in all, of a solve that is stopped after some and started again; 0 for never. */
static int solve(const std::string &options, int stopped_after)
{
    const Vector b = some_rhs();
    Vector x(b.size());
    recoup::Solve saved(MethodKind::conjugate, options, x.size(), recoup::Share::rows(0, x.size()), nullptr);
    const int before = static_cast<int>(saved.restore(x));
    std::optional<Deflated> deflation;
    if (const auto direction = saved.restored_direction()) {
        const Vector w(direction->begin(), direction->end());
        deflation.emplace(w, product(w));
        expect(deflation->is_sound(), "the direction that came back is one");
        deflation->correct(x, residual(b, x));
    }
    const auto precondition = [&](Vector &z) {
        if (!deflation) return;
        const double part = deflation->project_residual(z);
        deflation->project(z, part);
    };
    const auto monitor = [&](int k, double norm) {
        saved.after(static_cast<std::uint64_t>(k), norm, true, [&] { return recoup::Iterate{x, norm}; });
        if (stopped_after > 0 && before + k == stopped_after) throw Stopped{};
    };
    try {
        const int done = conjugate_gradients(b, x, precondition, monitor);
        expect(saved.first_norm() == std::sqrt(Algebra::dot(b, b)), "the first norm is that of the first process");
        saved.close();
        return before + done;
    } catch (const Stopped &) {
        return -1;
    }
}

static void test_conjugate(const std::string &folder)
{
    const auto options = [&](const char *name, const char *more) {
        return "dir=" + folder + "/" + name + " interval=5it sync scheme=lossless " + more;
    };
    const int whole = solve(options("whole", ""), 0);
    expect(solve(options("deflated", ""), whole / 2) == -1, "the solve is stopped");
    const int deflated = solve(options("deflated", ""), 0);
    expect(solve(options("plain", "state=x"), whole / 2) == -1, "the solve is stopped");
    const int plain = solve(options("plain", "state=x"), 0);
    expect(deflated <= 1.02 * whole, "with its direction CG needs at most 2 % more");
    expect(plain > 1.02 * whole, "without it, it needs more than that");
    std::printf("%d iterations, %d deflated, %d restarted\n", whole, deflated, plain);
}

/* A method whose x is new at the ends of cycles of 7, which it tells twice. */
static void test_cyclic(const std::string &folder)
{
    const std::string options = "dir=" + folder + "/cyclic interval=5it sync scheme=lossless";
    for (const bool is_second : {false, true}) {
        Vector x(10);
        recoup::Solve saved(MethodKind::cyclic, options, x.size(), recoup::Share::rows(0, x.size()), nullptr);
        const std::uint64_t before = saved.restore(x);
        expect(!saved.restored_direction(), "a cyclic method has no direction");
        if (is_second) {
            expect(before == 14 && x[9] == 14, "the end of the second cycle is the newest version");
            return;
        }
        const auto lend = [&] { return recoup::Iterate{x, 0}; };
        saved.after(0, 1, true, lend);
        for (std::uint64_t k = 1; k <= 20; ++k) {
            saved.after(k, 1, false, lend);
            if (k % 7 != 0) continue;
            x.assign(10, static_cast<double>(k));
            saved.after(k, 1, true, lend);
        }
        saved.close();
    }
}

int main(int, char **argv)
{
    test_conjugate(argv[1]);
    test_cyclic(argv[1]);
    std::printf("%d failures\n", failures);
    return failures != 0;
}
