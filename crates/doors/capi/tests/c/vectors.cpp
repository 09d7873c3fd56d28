/* recoup/eigen.hpp: what is lent is saved and restored where it is, and what cannot be lent is refused. Prints what does
 * not hold. */
#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <cmath>
#include <cstdio>
#include <recoup/eigen.hpp>
#include <stdexcept>
#include <string>
#include <vector>

using recoup::Role;

static int failures = 0;

static void expect(bool holds, const char *claim)
{
    if (!holds) {
        std::printf("not so: %s\n", claim);
        failures++;
    }
}

template <class Call>
static bool is_refused(Call &&call)
{
    try {
        call();
        return false;
    } catch (const std::invalid_argument &) {
        return true;
    }
}

/* A vector, a matrix, a column of one, an array of integers, and memory that Eigen does not own. */
static void test_values(const std::string &folder)
{
    const std::string options = "dir=" + folder + "/values interval=1it scheme=exact sync";
    Eigen::VectorXd x = Eigen::VectorXd::Zero(100);
    Eigen::MatrixXd fields = Eigen::MatrixXd::Zero(20, 3), columns = fields;
    Eigen::Array<std::int64_t, 4, 1> counts = Eigen::Array<std::int64_t, 4, 1>::Zero();
    std::vector<float> own(8);
    for (const bool is_second : {false, true}) {
        recoup::Run run(options);
        auto column = columns.col(1);
        auto top = fields.topRows(10);
        Eigen::Map<Eigen::VectorXf> map(own.data(), 8);
        Eigen::Ref<Eigen::VectorXd> part = x.tail(60);
        recoup::eigen::protect(run, "x", Role::iterate, part);
        recoup::eigen::protect(run, "fields", Role::dynamic, fields);
        recoup::eigen::protect(run, "column", Role::dynamic, column);
        recoup::eigen::protect(run, "counts", Role::dynamic, counts, recoup::Share::local());
        recoup::eigen::protect(run, "own", Role::dynamic, map);
        expect(is_refused([&] { recoup::eigen::protect(run, "top", Role::dynamic, top); }), "a block with gaps is refused");
        auto row = fields.row(1);
        expect(is_refused([&] { recoup::eigen::protect(run, "row", Role::dynamic, row); }), "a row of columns is refused");
        const auto restored = run.restore();
        if (is_second) {
            expect(restored && x[0] == 0 && x[40] == 0.5 && x[99] == 0.5, "the part of x is back");
            expect(fields(19, 2) == 59 && columns(7, 1) == 2 && columns(7, 0) == 0, "matrix and column are back");
            expect(counts[3] == 17 && own[7] == 1.5f, "integers and floats are back");
            return;
        }
        x.setConstant(0.5), columns.setConstant(2), counts.setConstant(17), map.setConstant(1.5f);
        for (Eigen::Index i = 0; i < fields.size(); ++i) fields.data()[i] = static_cast<double>(i);
        run.step(1, 1, 1);
        run.close();
        x.setZero(), fields.setZero(), columns.setZero(), counts.setZero(), map.setZero();
    }
}

/* Norms by hand, sparse and dense, and a version of another matrix. */
static void test_problem(const std::string &folder)
{
    Eigen::SparseMatrix<double> A(3, 3);
    A.insert(0, 0) = 4, A.insert(0, 2) = -3, A.insert(1, 1) = 2, A.insert(2, 1) = 5, A.insert(2, 2) = 1;
    const auto sparse = recoup::eigen::norms(A);
    const auto dense = recoup::eigen::norms(Eigen::MatrixXd(A));
    expect(sparse.infinity == 7 && sparse.one == 7, "norms of a sparse matrix");
    expect(dense.infinity == sparse.infinity && dense.one == sparse.one, "norms of a dense matrix");
    const Eigen::VectorXd b = Eigen::VectorXd::Ones(3), longer = Eigen::VectorXd::Ones(4);
    const std::string options = "dir=" + folder + "/problem interval=1it scheme=lossless sync";
    for (const bool is_other : {false, true}) {
        recoup::Run run(options);
        Eigen::VectorXd x = b;
        expect(is_refused([&] { recoup::eigen::problem(run, A, longer); }), "a right-hand side of another size is refused");
        if (is_other) A.coeffRef(1, 1) = 3;
        recoup::eigen::problem(run, A, b);
        recoup::eigen::protect(run, "x", Role::iterate, x);
        const auto restored = recoup::expected([&] { return run.restore(); });
        const bool is_found_out = !restored && restored.error().code() == RECOUP_E_OTHER_PROBLEM;
        expect(is_other == is_found_out, "another matrix is found out");
        if (!is_other) run.step(1, (b - A * x).norm(), b.norm());
    }
}

int main(int, char **argv)
{
    test_values(argv[1]);
    test_problem(argv[1]);
    std::printf("%d failures\n", failures);
    return failures != 0;
}
