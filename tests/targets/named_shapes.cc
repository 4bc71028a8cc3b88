// Planted C++ for tests of names: templates, lambdas, local and unnamed types, namespaces, exceptions.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
struct Hidden {
	int f(int x) const;
};
__attribute__((noinline)) int Hidden::f(int x) const
{
	return x * 3 + 1;
}
} // namespace

namespace outer::inner {
template <typename T> struct Box {
	T v;
	__attribute__((noinline)) T get(T a)
	{
		return v + a;
	}
	T twice(T a)
	{
		return get(a) + get(a);
	}
};
} // namespace outer::inner

static inline int leaf(int x)
{
	return x * x + 7;
}

__attribute__((noinline)) int work(int n)
{
	std::vector<int> v;

	for (int i = 0; i < n; i++)
		v.push_back(leaf(i));
	std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
	return v.empty() ? 0 : v[0];
}

__attribute__((noinline)) void thrower(int x)
{
	if (x == 12345)
		throw std::runtime_error("x");
}

int main(int argc, char **argv)
{
	struct Local {
		int operator()(int a)
		{
			struct In {
				int m(int q)
				{
					return q * 5;
				}
			} i;
			return i.m(a) + 1;
		}
	} local;
	std::function<int(int)> fn = [argc](int z) { return z * argc; };
	outer::inner::Box<long> b{3};
	outer::inner::Box<std::string> s{argv[0]};
	std::map<std::string, int> m;

	for (int i = 0; i < 10; i++)
		m[std::to_string(i)] += i;
	try {
		thrower(argc);
	} catch (std::exception &e) {
		puts(e.what());
	}
	printf("%d %ld %s %d %d %zu\n", work(argc * 10), b.twice(2), s.twice("b").c_str(), fn(2), local(4), m.size());
	return Hidden{}.f(argc);
}
