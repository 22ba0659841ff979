# The Lyapunov exponent of the logistic map: the mean of ln |r (1 - 2 x)| along the orbit of x.
BEGIN {
  for (i = 0; i < 1000; ++i) x = rate * x * (1 - x)
  for (i = 0; i < steps; ++i) {
    x = rate * x * (1 - x)
    slope = rate * (1 - 2 * x)
    if (slope < 0) slope = -slope
    if (slope < 1e-300) slope = 1e-300
    sum += log(slope)
  }
  printf "%.12g\n", sum / steps >out
}
