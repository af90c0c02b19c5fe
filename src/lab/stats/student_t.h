// Student's t distribution.
#pragma once

namespace megamoe::lab {

// P(|T| >= |t|) for `dof` > 0 degrees of freedom.
double student_t_two_sided(double t, double dof);
// The t with P(|T| >= t) = alpha. In  0 < alpha < 1
// Same  relative error below 1e-9
double student_t_critical(double alpha, double dof);

}  // namespace megamoe::lab
