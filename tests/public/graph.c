/* Profiles calls of its own, when it is compiled with -finstrument-functions, as C and as C++. Prints what it found. */
#include <assay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
void work(void *context);
void inner(int *count);
void callback(void *context);
#ifdef __cplusplus
}
#endif

void inner(int *count)
{
	++*count;
}

void work(void *context)
{
	int i;

	for (i = 0; i < 1000; i++)
		inner((int *)context);
}

static int nested_result;

void callback(void *context)
{
	struct assay_graph *graph = NULL;

	nested_result = assay_profile(work, context, &graph);
}

static int all_but_inner(void *context, const struct assay_graph_node *node, const struct assay_graph_edge *edge)
{
	(void)context;
	(void)edge;
	return strcmp(node->function, "inner") != 0;
}

static void print_node(const struct assay_graph *graph, size_t number)
{
	struct assay_graph_node node;
	struct assay_graph_edge edge;

	if (assay_graph_node_at(graph, number, &node) < 0)
		return;
	printf("%s %ld %ld %lu %lu\n", node.function, (long)node.nc1, (long)node.nc2, (unsigned long)node.called_by,
	       (unsigned long)node.calls_to);
	if (node.calls_to && assay_graph_edge_at(graph, number, 1, 0, &edge) == 0 && edge.tall <= node.tall)
		printf("calls %ld\n", (long)edge.nc2);
	if (node.tin > node.tall || node.tall <= 0)
		printf("times are wrong\n");
}

int main(int argc, char **argv)
{
	struct assay_graph *graph = NULL, *again = NULL;
	struct assay_graph_view view;
	int count = 0;
	char *text;

	if (argc < 2)
		return 2;
	if (assay_profile(work, &count, &graph) < 0) {
		printf("%d: %s\n", count, assay_last_error());
		return 1;
	}
	print_node(graph, assay_graph_root(graph));
	if (assay_graph_write(graph, argv[1]) < 0 || assay_graph_read(argv[1], &again) < 0)
		printf("%s\n", assay_last_error());
	printf("%lu %lu\n", (unsigned long)assay_graph_nodes(graph), (unsigned long)assay_graph_nodes(again));
	memset(&view, 0, sizeof view);
	view.format = ASSAY_GRAPH_TEXT;
	view.keep = all_but_inner;
	text = assay_graph_render(again, &view);
	printf("%d %d\n", text && strstr(text, "work") != NULL, text && strstr(text, "inner") != NULL);
	free(text);
	text = assay_graph_render(graph, NULL);
	printf("%d\n", text && strstr(text, "work") != NULL);
	free(text);
	assay_graph_free(graph);
	assay_graph_free(again);
	graph = NULL;
	if (assay_profile(callback, &count, &graph) == 0)
		printf("nested %d\n", nested_result);
	assay_graph_free(graph);
	return 0;
}
