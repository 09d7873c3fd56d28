/* recoup/eigen.hpp: Eigen's vectors and matrices lent to a recoup::Run, for loops of the program's own. Eigen 3.3 or
 * newer.
 *
 *     recoup::Run run("dir=ckpt interval=20it");
 *     recoup::eigen::problem(run, A, b);
 *     recoup::eigen::protect(run, "x", recoup::Role::iterate, x);
 *     recoup::eigen::protect(run, "p", recoup::Role::recurrence, p);
 *     if (auto restored = run.restore()) k = restored->iteration;
 *     after each iteration: run.step(k, norm_r, norm_b);
 *
 * Values are saved and restored where they are: vectors, matrices, arrays, Maps and Refs, and blocks whose values follow
 * one another. A variable keeps its size and its memory until the run is closed, so the loop must not resize it, move
 * it or swap() it with another one.
 */
#ifndef RECOUP_EIGEN_HPP
#define RECOUP_EIGEN_HPP

#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <recoup.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace recoup::eigen {

/* Lends a variable where it is. std::invalid_argument if its values do not follow one another, as in a row of a matrix
 * that is stored by columns. */
template <class Derived>
void protect(Run &run, const std::string &name, Role role, Eigen::DenseBase<Derived> &values,
             std::optional<Share> share = std::nullopt)
{
    Derived &lent = values.derived();
    const bool is_one_line = lent.outerSize() <= 1 || lent.outerStride() == lent.innerSize();
    if (lent.innerStride() != 1 || !is_one_line) {
        throw std::invalid_argument(name + ": the values do not follow one another in memory");
    }
    run.protect(name, role, Values(lent.data(), static_cast<std::size_t>(lent.size())), share);
}

/* Largest sums of absolute values: ||A||_inf of the rows, ||A||_1 of the columns. */
struct Norms {
    double infinity = 0;
    double one = 0;
};

template <class Scalar, int Options, class Index>
Norms norms(const Eigen::SparseMatrix<Scalar, Options, Index> &A)
{
    using Matrix = Eigen::SparseMatrix<Scalar, Options, Index>;
    Eigen::VectorXd rows = Eigen::VectorXd::Zero(A.rows()), columns = Eigen::VectorXd::Zero(A.cols());
    for (Eigen::Index outer = 0; outer < A.outerSize(); ++outer) {
        for (typename Matrix::InnerIterator entry(A, outer); entry; ++entry) {
            rows[entry.row()] += std::abs(entry.value());
            columns[entry.col()] += std::abs(entry.value());
        }
    }
    return A.nonZeros() == 0 ? Norms{} : Norms{rows.maxCoeff(), columns.maxCoeff()};
}

template <class Derived>
Norms norms(const Eigen::MatrixBase<Derived> &A)
{
    if (A.size() == 0) return Norms{};
    return Norms{A.cwiseAbs().rowwise().sum().maxCoeff(), A.cwiseAbs().colwise().sum().maxCoeff()};
}

/* Gives the problem A x = b of a square matrix of doubles, sparse or dense, with its norms. A thread of the library
 * multiplies with A while the program works: A stays where it is, and as it is, until the run is closed. b is copied. */
template <class Matrix>
void problem(Run &run, const Matrix &A, const Eigen::VectorXd &b)
{
    if (A.rows() != A.cols() || A.rows() != b.size()) throw std::invalid_argument("A is not square, or b has another size");
    const auto apply = [&A](const double *x, double *y) {
        const Eigen::Map<const Eigen::VectorXd> source(x, A.cols());
        Eigen::Map<Eigen::VectorXd> target(y, A.rows());
        target.noalias() = A * source;
    };
    run.problem(apply, Values(b.data(), static_cast<std::size_t>(b.size())), {}, A.norm(), RECOUP_OPERATOR_ANY_THREAD);
    const Norms largest = norms(A);
    run.norms(largest.infinity, largest.one);
}

/* A matrix that ends with the call cannot be multiplied with later. */
template <class Matrix>
void problem(Run &run, const Matrix &&A, const Eigen::VectorXd &b) = delete;

} // namespace recoup::eigen

#endif /* RECOUP_EIGEN_HPP */
