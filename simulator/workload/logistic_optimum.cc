// Finds the optimum by Newton's method. Each step solves its linear system by conjugate gradients,
// which need only products of the Hessian with vectors.
#include <cmath>

#include "workload/lane_sum.h"
#include "workload/logistic_problem.h"

namespace leeway::sim {
namespace {

using Vector = std::vector<double>;

constexpr double kGradientNorm = 1e-10;
constexpr int kNewtonSteps = 100;
constexpr double kSolved = 1e-3;  // residual of a step over the gradient
constexpr int kHalvings = 40;

double dot(const Vector& a, const Vector& b) {
  return lane_sum(a.size(), [&](std::size_t j) { return a[j] * b[j]; });
}
Vector sum(const Vector& a, double factor, const Vector& b) {
  Vector result(a);
  for (std::size_t j = 0; j < a.size(); ++j) result[j] += factor * b[j];
  return result;
}

// Returns an approximate solution d of Hessian(w) d = gradient.
Vector newton_step(const LogisticProblem& problem, const Vector& w, const Vector& gradient) {
  const Vector curvatures = problem.curvatures(problem.all(), w);
  Vector step(w.size());
  Vector residual = gradient;
  Vector direction = residual;
  Vector image(w.size());
  double square = dot(residual, residual);
  const double enough = square * kSolved * kSolved;
  for (std::size_t i = 0; i < 2 * w.size() && square > enough; ++i) {
    problem.hessian_times(problem.all(), curvatures, direction, image);
    const double along = dot(direction, image);
    if (along <= 0) break;  // curvature lost to rounding
    const double length = square / along;
    step = sum(step, length, direction);
    residual = sum(residual, -length, image);
    const double before = square;
    square = dot(residual, residual);
    direction = sum(residual, square / before, direction);
  }
  return step;
}

// Returns the point w - length * step. The length is 1 at first, and is halved until the objective
// falls by at least 1e-4 of what its slope at w promises (Armijo's rule).
Vector descend(const LogisticProblem& problem, const Vector& w, const Vector& gradient,
               const Vector& step) {
  const double here = problem.objective(problem.all(), w);
  const double slope = dot(gradient, step);
  const double rounding = 1e-14 * std::fabs(here);
  double length = 1;
  for (int i = 0; i < kHalvings; ++i, length /= 2) {
    const Vector there = sum(w, -length, step);
    if (problem.objective(problem.all(), there) <= here - 1e-4 * length * slope + rounding) {
      return there;
    }
  }
  return w;
}

bool separates(const LogisticProblem& problem, const Vector& w) {
  const auto points = problem.all();
  for (std::size_t i = 0; i < points.count; ++i) {
    if (problem.label(i) * problem.margin(i, w) <= 0) return false;
  }
  return true;
}

}  // namespace

Result<Vector> find_optimum(const LogisticProblem& problem) {
  Vector w(problem.dimensions());
  Vector gradient(w.size());
  for (int step = 0; step < kNewtonSteps; ++step) {
    problem.gradient(problem.all(), w, gradient);
    if (problem.options().l2 == 0 && separates(problem, w)) break;
    if (std::sqrt(dot(gradient, gradient)) <= kGradientNorm) return w;
    w = descend(problem, w, gradient, newton_step(problem, w, gradient));
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "workload.logistic has no optimum: with l2 %g a plane separates its points, "
                       "or nearly; raise l2 or samples_per_rank",
                       problem.options().l2);
}

}  // namespace leeway::sim
