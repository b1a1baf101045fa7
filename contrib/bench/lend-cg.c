/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lend-cg: conjugate gradients with MPI between ranks and OpenMP inside each, to measure lending
 * (doc/lend.md). The matrix is a stencil of 27 points on a grid, in slices of planes, with stored
 * coefficients. As MiniFE does, it prints times of the whole, of CG and of its three parts.
 * To compile it: mpicc -O2 -fopenmp -o lend-cg lend-cg.c -l m
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_DEFAULT 96
#define SIZE_MAX_POINTS 4096 /* in each direction */
#define ITERATIONS_DEFAULT 200
#define ITERATIONS_MAX 1000000
#define IMBALANCE_MAX 90 /* percent */
#define POINTS 27        /* of the stencil */
#define CENTRE 26.       /* coefficient; the others are -1 */
#define TAG_UP 1
#define TAG_DOWN 2
#define WRONG_INPUT 2

struct options {
	int size, iterations;
	double imbalance; /* 0 to IMBALANCE_MAX */
	bool help;
};

/* The planes of a rank, with a border of zeros or of the neighbours' values around them. */
struct grid {
	int n, planes;
	int below, above; /* ranks */
	size_t line, plane, cells;
};

struct times {
	double matvec, dot, waxpby;
};

/* ---- the grid ---- */

/* The first plane of a rank: the share of planes falls by the same step from rank to rank. */
static int first_plane(const struct options *o, int rank, int ranks)
{
	double sum = 0;

	for (int r = 0; r < rank; r++)
		sum += ranks > 1 ? 1 + o->imbalance / 100 * (1 - 2. * r / (ranks - 1)) : 1;
	return (int)lround(o->size * sum / ranks);
}

static struct grid make_grid(const struct options *o, int rank, int ranks)
{
	struct grid g = { .n = o->size,
			  .planes = first_plane(o, rank + 1, ranks) - first_plane(o, rank, ranks),
			  .below = rank ? rank - 1 : MPI_PROC_NULL,
			  .above = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL };

	g.line = (size_t)g.n + 2;
	g.plane = g.line * g.line;
	g.cells = g.plane * ((size_t)g.planes + 2);
	return g;
}

/* The first point of a line of points. */
static size_t at(const struct grid *g, int y, int z)
{
	return (size_t)(z + 1) * g->plane + (size_t)(y + 1) * g->line + 1;
}

/* The values of the planes of the neighbours that touch those of this rank. */
static void exchange(const struct grid *g, double *v)
{
	int count = (int)g->plane;
	MPI_Request r[4];
	MPI_Status s[4];

	MPI_Irecv(v, count, MPI_DOUBLE, g->below, TAG_UP, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(v + g->plane * ((size_t)g->planes + 1), count, MPI_DOUBLE, g->above, TAG_DOWN,
		  MPI_COMM_WORLD, &r[1]);
	MPI_Isend(v + g->plane * (size_t)g->planes, count, MPI_DOUBLE, g->above, TAG_UP,
		  MPI_COMM_WORLD, &r[2]);
	MPI_Isend(v + g->plane, count, MPI_DOUBLE, g->below, TAG_DOWN, MPI_COMM_WORLD, &r[3]);
	MPI_Waitall(4, r, s);
}

/* ---- the three parts of CG ---- */

/* The coefficients of the first point of a line. */
static size_t row(const struct grid *g, int y, int z)
{
	return ((size_t)z * (size_t)g->n + (size_t)y) * (size_t)g->n * POINTS;
}

static double product(const struct grid *g, const double *a, const double *point)
{
	double sum = 0;

	for (int k = -1; k <= 1; k++)
		for (int j = -1; j <= 1; j++, a += 3) {
			const double *p = point + k * (ptrdiff_t)g->plane + j * (ptrdiff_t)g->line;

			sum += a[0] * p[-1] + a[1] * p[0] + a[2] * p[1];
		}
	return sum;
}

/* out = A v */
static void matvec(const struct grid *g, const double *matrix, double *v, double *out,
		   double *time)
{
	double begin = MPI_Wtime();

	exchange(g, v);
#pragma omp parallel for collapse(2) schedule(static)
	for (int z = 0; z < g->planes; z++)
		for (int y = 0; y < g->n; y++) {
			const double *in = v + at(g, y, z), *a = matrix + row(g, y, z);
			double *to = out + at(g, y, z);

			for (int x = 0; x < g->n; x++)
				to[x] = product(g, a + (size_t)x * POINTS, in + x);
		}
	*time += MPI_Wtime() - begin;
}

static double dot(const struct grid *g, const double *a, const double *b, double *time)
{
	double begin = MPI_Wtime(), sum = 0, all;

#pragma omp parallel for collapse(2) schedule(static) reduction(+ : sum)
	for (int z = 0; z < g->planes; z++)
		for (int y = 0; y < g->n; y++) {
			size_t first = at(g, y, z);

			for (int x = 0; x < g->n; x++)
				sum += a[first + (size_t)x] * b[first + (size_t)x];
		}
	MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	*time += MPI_Wtime() - begin;
	return all;
}

/* out = a v + b w */
static void waxpby(const struct grid *g, double a, const double *v, double b, const double *w,
		   double *out, double *time)
{
	double begin = MPI_Wtime();

#pragma omp parallel for collapse(2) schedule(static)
	for (int z = 0; z < g->planes; z++)
		for (int y = 0; y < g->n; y++) {
			size_t first = at(g, y, z);

			for (int x = 0; x < g->n; x++)
				out[first + (size_t)x] =
					a * v[first + (size_t)x] + b * w[first + (size_t)x];
		}
	*time += MPI_Wtime() - begin;
}

/* ---- CG ---- */

struct vectors {
	double *matrix; /* POINTS coefficients of each point */
	double *x, *r, *p, *ap;
};

static void fill(const struct grid *g, double *matrix)
{
#pragma omp parallel for schedule(static)
	for (int z = 0; z < g->planes; z++)
		for (size_t i = row(g, 0, z); i < row(g, 0, z + 1); i++)
			matrix[i] = i % POINTS == POINTS / 2 ? CENTRE : -1;
}

/* False: no memory. The vectors begin with zeros. */
static bool make_vectors(const struct grid *g, struct vectors *v)
{
	double **const all[] = { &v->x, &v->r, &v->p, &v->ap };
	bool complete;

	v->matrix = malloc(row(g, 0, g->planes) * sizeof(double));
	complete = v->matrix != NULL;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = calloc(g->cells, sizeof(double));
		complete &= *all[i] != NULL;
	}
	if (complete)
		fill(g, v->matrix);
	return complete;
}

static void free_vectors(struct vectors *v)
{
	free(v->matrix);
	free(v->x);
	free(v->r);
	free(v->p);
	free(v->ap);
}

/* Iterations until A x = r, for r = A 1. The residual against that of the begin goes to *rest. */
static int solve(const struct options *o, const struct grid *g, struct vectors *v,
		 struct times *t, double *rest)
{
	double before, now, begin, alpha;
	int i = 0;

	for (int z = 0; z < g->planes; z++)
		for (int y = 0; y < g->n; y++)
			for (int x = 0; x < g->n; x++)
				v->p[at(g, y, z) + (size_t)x] = 1;
	matvec(g, v->matrix, v->p, v->r, &t->matvec);
	waxpby(g, 1, v->r, 0, v->r, v->p, &t->waxpby);
	begin = now = dot(g, v->r, v->r, &t->dot);
	while (i < o->iterations && now > 0) {
		matvec(g, v->matrix, v->p, v->ap, &t->matvec);
		alpha = now / dot(g, v->p, v->ap, &t->dot);
		waxpby(g, 1, v->x, alpha, v->p, v->x, &t->waxpby);
		waxpby(g, 1, v->r, -alpha, v->ap, v->r, &t->waxpby);
		before = now;
		now = dot(g, v->r, v->r, &t->dot);
		waxpby(g, 1, v->r, now / before, v->p, v->p, &t->waxpby);
		i++;
	}
	*rest = sqrt(now / begin);
	return i;
}

/* ---- options ---- */

static void usage(FILE *to)
{
	fprintf(to,
		"usage: srun --mpi=pmi2x lend-cg [--size=N] [--imbalance=PERCENT] [--iterations=N]\n"
		"\n"
		"Conjugate gradients with MPI and OpenMP on a grid of N x N x N points. Prints\n"
		"seconds of the whole, of CG, and of its parts, of rank 0.\n"
		"\n"
		"  --size=N             points in each direction (%d)\n"
		"  --imbalance=PERCENT  the first rank has so much more work than the average, the\n"
		"                       last one as much less: 25 is 5:3 between two ranks (0)\n"
		"  --iterations=N       at most (%d)\n",
		SIZE_DEFAULT, ITERATIONS_DEFAULT);
}

static bool read_number(const char *name, const char *text, double least, double most,
			bool whole, double *out, bool speaks)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (!errno && end != text && !*end && *out >= least && *out <= most &&
	    (!whole || *out == floor(*out)))
		return true;
	if (speaks)
		fprintf(stderr, "lend-cg: --%s=%s is not a %snumber from %g to %g\n", name, text,
			whole ? "whole " : "", least, most);
	return false;
}

/* False: an option is wrong, and rank 0 has said so. */
static bool read_options(struct options *o, int argc, char **argv, bool speaks)
{
	static const struct option names[] = {
		{ "size", required_argument, NULL, 's' },
		{ "imbalance", required_argument, NULL, 'i' },
		{ "iterations", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool right = true;
	double value = 0;
	int c;

	opterr = speaks;
	while (right && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 's')
			right = read_number("size", optarg, 1, SIZE_MAX_POINTS, true, &value, speaks);
		else if (c == 'i')
			right = read_number("imbalance", optarg, 0, IMBALANCE_MAX, false, &value,
					    speaks);
		else if (c == 'n')
			right = read_number("iterations", optarg, 1, ITERATIONS_MAX, true, &value,
					    speaks);
		else
			right = c == 'h';
		o->help |= c == 'h';
		o->size = c == 's' ? (int)value : o->size;
		o->imbalance = c == 'i' ? value : o->imbalance;
		o->iterations = c == 'n' ? (int)value : o->iterations;
	}
	if (right && optind < argc && speaks)
		fprintf(stderr, "lend-cg: %s is not an option: see lend-cg --help\n", argv[optind]);
	return right && optind == argc;
}

static bool has_planes(const struct options *o, int ranks, bool speaks)
{
	for (int r = 0; r < ranks; r++)
		if (first_plane(o, r, ranks) == first_plane(o, r + 1, ranks)) {
			if (speaks)
				fprintf(stderr, "lend-cg: rank %d has no plane of the grid: use a larger --size or a smaller --imbalance\n",
					r);
			return false;
		}
	return true;
}

/* ---- the program ---- */

static int run(const struct options *o, int rank, int ranks)
{
	struct grid g = make_grid(o, rank, ranks);
	double begin = MPI_Wtime(), cg, rest;
	struct times t = { 0 };
	struct vectors v;
	int done;

	if (!make_vectors(&g, &v)) {
		fprintf(stderr, "lend-cg: rank %d has no memory for %d planes: use a smaller --size\n",
			rank, g.planes);
		MPI_Abort(MPI_COMM_WORLD, WRONG_INPUT);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	cg = MPI_Wtime();
	done = solve(o, &g, &v, &t, &rest);
	MPI_Barrier(MPI_COMM_WORLD);
	cg = MPI_Wtime() - cg;
	free_vectors(&v);
	if (!rank)
		printf("Iterations: %d\nResidual: %.3g\nTotal Time: %.5f\nCG Time: %.5f\n"
		       "MATVEC Time: %.5f\nDOT Time: %.5f\nWAXPBY Time: %.5f\n",
		       done, rest, MPI_Wtime() - begin, cg, t.matvec, t.dot, t.waxpby);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .size = SIZE_DEFAULT, .iterations = ITERATIONS_DEFAULT };
	int rank, ranks, rc = WRONG_INPUT;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!read_options(&o, argc, argv, !rank))
		rc = WRONG_INPUT;
	else if (o.help)
		rc = 0;
	else if (has_planes(&o, ranks, !rank))
		rc = run(&o, rank, ranks);
	if (o.help && !rc && !rank)
		usage(stdout);
	MPI_Finalize();
	return rc;
}
