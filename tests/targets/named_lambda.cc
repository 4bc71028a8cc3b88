// A lambda that is inlined wherever it is used, and so has no symbol of its own.
#include <cstdio>
#include <vector>

template <class F> static void each(const std::vector<double> &values, F f)
{
	for (double value : values)
		f(value);
}

int main(int argc, char **)
{
	std::vector<double> values(100, argc);
	double sum = 0;

	each(values, [&](double value) { sum += value * value; });
	std::printf("%g\n", sum);
	return 0;
}
