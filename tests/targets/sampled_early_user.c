/* Has its signals handled by the library sampled_early. */
void sampled_early_raise(int times);

int main(void)
{
	sampled_early_raise(1500);
	return 0;
}
