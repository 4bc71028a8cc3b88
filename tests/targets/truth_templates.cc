// truth_templates SECONDS: work in two instances of a template, a method of a class in a namespace, and a lambda.
#include <cstdlib>
#include <string>
#include <vector>

#include "truth.h"

namespace planted
{

static int64_t three_ns, four_ns, method_ns, lambda_ns;

template <int N> APART void burn_times(int64_t ns, int64_t *sum)
{
	BURN(ns * N, sum);
}

template <typename T> class Shape
{
      public:
	explicit Shape(T size) : size_(size)
	{
	}
	APART T area(const std::vector<std::string> &names, int64_t ns)
	{
		BURN(ns * 2, &method_ns);
		return size_ * static_cast<T>(names.size());
	}

      private:
	T size_;
};

template <typename F> APART static void call(F f, int64_t ns)
{
	f(ns);
}

} // namespace planted

int main(int argc, char **argv)
{
	using namespace planted;
	const auto ns = static_cast<int64_t>(std::atof(argc > 1 ? argv[1] : "1") * 1e9 / 10);
	auto lambda = [](int64_t time) __attribute__((noinline))
	{
		BURN(time, &lambda_ns);
	};

	burn_times<3>(ns, &three_ns);
	burn_times<4>(ns, &four_ns);
	if (Shape<double>(2).area({"a", "b"}, ns) < 0)
		return 3;
	call(lambda, ns);
	tell("burn_times<3>", three_ns);
	tell("burn_times<4>", four_ns);
	tell("area", method_ns);
	tell("lambda", lambda_ns);
	return 0;
}
