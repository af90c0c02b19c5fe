#include "lab/stats/student_t.h"

#include <cmath>

#include "base/check.h"

namespace megamoe::lab {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
    constexpr double kTiny = 1e-300;
    constexpr double kPrecision = 1e-15;
    const auto nonzero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
    double c = 1;
    double d = 1 / nonzero(1 - (a + b) * x / (a + 1));
    double fraction = d;
    for (int m = 1; m <= 500; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / nonzero(1 + even * d);
        c = nonzero(1 + even / c);
        fraction *= c * d;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / nonzero(1 + odd * d);
        c = nonzero(1 + odd / c);
        fraction *= c * d;
        if (std::abs(c * d - 1) < kPrecision) {
            break;
        }
    }
    return fraction;
}

double incomplete_beta(double a, double b, double x) {
    if (x <= 0 || x >= 1) {
        return x <= 0 ? 0 : 1;
    }
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_t_two_sided(double t, double dof) {
    return incomplete_beta(dof / 2, 0.5, dof / (dof + t * t));
}

double student_t_critical(double alpha, double dof) {
    MM_CHECK(alpha > 0 && alpha < 1 && dof > 0, "alpha", alpha, "dof", dof);
    double low = 0;
    double high = 1;
    while (student_t_two_sided(high, dof) > alpha) {
        high *= 2;
    }
    for (int k = 0; k < 200 && high - low > 1e-12 * high; ++k) {
        const double middle = (low + high) / 2;
        (student_t_two_sided(middle, dof) > alpha ? low : high) = middle;
    }
    return (low + high) / 2;
}

}  // namespace megamoe::lab
