/* The program of examples/exec, as C++ compiles it. */
#include "../../../../../examples/exec/heat.c"
